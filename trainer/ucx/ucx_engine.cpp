#include "trainer/ucx/ucx_engine.h"

#include <utility>

#include "trainer/ucx/ucx_log.h"

namespace everstep::trainer {
namespace {

Error ucx_error(const std::string& what, ucs_status_t status, ErrorCode code = ErrorCode::kInternal) {
  const std::string complaint = take_ucx_complaint();
  return {code, "UCX: " + what + ": " + ucs_status_string(status) + (complaint.empty() ? "" : ", " + complaint), {}};
}

Error transfer_error(ucs_status_t status) {
  if (status == UCS_ERR_MESSAGE_TRUNCATED) {
    return {ErrorCode::kInternal, "a message is longer than expected", "do all workers run the same plan and options?"};
  }
  return ucx_error("a transfer failed", status, ErrorCode::kUnavailable);
}

void conclude(void* user_data, ucs_status_t status, std::size_t bytes) {
  const std::unique_ptr<UcxDone> done(static_cast<UcxDone*>(user_data));
  if (status == UCS_OK) {
    (*done)(bytes);
  } else {
    (*done)(transfer_error(status));
  }
}

// `pending` is what a non-blocking call returned: nothing if it is over, a request that will call back, or an error.
void started(ucs_status_ptr_t pending, void* user_data) {
  if (pending == nullptr) return conclude(user_data, UCS_OK, 0);
  if (UCS_PTR_IS_ERR(pending)) conclude(user_data, UCS_PTR_STATUS(pending), 0);
}

void on_sent(void* request, ucs_status_t status, void* user_data) {
  conclude(user_data, status, 0);
  ucp_request_free(request);
}

void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user_data) {
  conclude(user_data, status, info->length);
  ucp_request_free(request);
}

Result<ucp_context_h> make_context(const UcxEngineOptions& options) {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) {
    return ucx_error("cannot read its configuration", status);
  }
  const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> owner(config, ucp_config_release);
  const char* const transports = options.read_memory ? "tcp,cma,self" : "tcp,self";
  for (const auto& [name, value] : {std::pair{"TLS", transports}, std::pair{"NET_DEVICES", options.device.c_str()}}) {
    if (const ucs_status_t status = ucp_config_modify(config, name, value); status != UCS_OK) {
      return ucx_error(std::string("cannot set ") + name + " to " + value, status);
    }
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  if (const ucs_status_t status = ucp_init(&params, config, &context); status != UCS_OK) {
    return ucx_error("cannot start on the network device " + options.device, status);
  }
  return context;
}

}  // namespace

Result<std::unique_ptr<UcxEngine>> UcxEngine::create(const UcxEngineOptions& options) {
  keep_ucx_quiet();
  std::unique_ptr<UcxEngine> engine(new UcxEngine);
  const Result<ucp_context_h> context = make_context(options);
  if (!context) return context.error();
  engine->context_ = *context;

  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(engine->context_, &params, &engine->worker_);
  if (status != UCS_OK) return ucx_error("cannot make a worker", status);
  status = ucp_worker_get_efd(engine->worker_, &engine->descriptor_);
  if (status != UCS_OK) return ucx_error("cannot sleep until something happens", status);
  return engine;
}

UcxEngine::~UcxEngine() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);  // and its endpoints
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<std::string> UcxEngine::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &length);
  if (status != UCS_OK) return ucx_error("cannot tell its address", status);
  std::string text(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return text;
}

Status UcxEngine::connect(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h endpoint = nullptr;
    if (const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint); status != UCS_OK) {
      return ucx_error("cannot reach worker " + std::to_string(endpoints_.size()), status);
    }
    endpoints_.push_back(endpoint);
  }
  return {};
}

void UcxEngine::send(int to, std::uint64_t tag, std::span<const std::byte> bytes, UcxDone done) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = new UcxDone(std::move(done));
  started(ucp_tag_send_nbx(endpoints_[to], bytes.data(), bytes.size(), tag, &param), param.user_data);
}

void UcxEngine::receive(std::uint64_t tag, std::span<std::byte> bytes, UcxDone done) {
  ucp_request_param_t param{};
  // Without an immediate end the length always comes with the call back.
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  param.user_data = new UcxDone(std::move(done));
  constexpr ucp_tag_t kAllBits = ~ucp_tag_t{0};
  started(ucp_tag_recv_nbx(worker_, bytes.data(), bytes.size(), tag, kAllBits, &param), param.user_data);
}

void UcxEngine::progress() {
  while (ucp_worker_progress(worker_) != 0) {
  }
}

bool UcxEngine::arm() { return ucp_worker_arm(worker_) != UCS_ERR_BUSY; }

void UcxEngine::settle() {
  progress();
  if (!arm()) ucp_worker_signal(worker_);
}

}  // namespace everstep::trainer
