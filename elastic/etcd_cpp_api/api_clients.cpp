#include "elastic/etcd_cpp_api/api_clients.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/check.h"
#include "base/text.h"

namespace everstep::elastic {
namespace {

namespace fs = std::filesystem;

constexpr auto kTryLimit = std::chrono::milliseconds(500);

// The library reads certificates from files only. They are there while clients are made, for us alone.
class CertificateFiles {
 public:
  explicit CertificateFiles(const EtcdOptions& options) {
    if (options.ca.empty()) return;
    std::random_device device;
    directory_ = fs::temp_directory_path() / ("everstep-" + hex_text((std::uint64_t{device()} << 32) | device()));
    EVERSTEP_CHECK(fs::create_directory(directory_), "cannot make the directory " + directory_.string());
    fs::permissions(directory_, fs::perms::owner_all);
    ca = write("ca", options.ca);
    certificate = write("certificate", options.certificate);
    key = write("key", options.key);
  }
  ~CertificateFiles() {
    std::error_code ignored;
    if (!directory_.empty()) fs::remove_all(directory_, ignored);
  }
  CertificateFiles(const CertificateFiles&) = delete;
  CertificateFiles& operator=(const CertificateFiles&) = delete;

  std::string ca;
  std::string certificate;
  std::string key;

 private:
  std::string write(const char* name, const std::string& text) const {
    if (text.empty()) return {};
    const fs::path path = directory_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  fs::path directory_;
};

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetServiceConfigJSON(
      R"({"methodConfig": [{"name": [{"service": "etcdserverpb.Lease"}], "timeout": "3s"}]})");
  return arguments;
}

// The library turns names into addresses; certificates are made for names.
std::string host_of(const Endpoint& endpoint) {
  const std::string host = endpoint.target.substr(0, endpoint.target.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

std::unique_ptr<etcd::SyncClient> make_client(const Endpoint& endpoint, const CertificateFiles& files) {
  const grpc::ChannelArguments arguments = channel_arguments();
  if (!endpoint.secure) return std::make_unique<etcd::SyncClient>(endpoint.url, arguments);
  return std::make_unique<etcd::SyncClient>(endpoint.url, files.ca, files.certificate, files.key, host_of(endpoint),
                                            arguments);
}

gpr_timespec grpc_deadline(ApiClock::time_point limit) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(limit - ApiClock::now());
  return gpr_time_from_micros(left.count(), GPR_TIMESPAN);
}

}  // namespace

ApiClients::ApiClients(const std::vector<Endpoint>& endpoints, const EtcdOptions& options)
    : servers_(endpoints.size()) {
  const CertificateFiles files(options);
  for (std::size_t index = 0; index < endpoints.size(); ++index) {
    servers_[index].url = endpoints[index].url;
    for (std::size_t at = 0; at < kLimits.size(); ++at) {
      servers_[index].clients[at] = make_client(endpoints[index], files);
      servers_[index].clients[at]->set_grpc_timeout(kLimits[at]);
    }
    servers_[index].unlimited = make_client(endpoints[index], files);
  }
}

ApiClock::time_point ApiClients::try_limit(ApiClock::time_point deadline) const {
  return size() == 1 ? deadline : std::min(deadline, ApiClock::now() + kTryLimit);
}

etcd::SyncClient& ApiClients::client(std::size_t index, ApiClock::time_point end) const {
  constexpr auto kSpent = std::chrono::milliseconds(20);  // of a round time since it was told
  const auto left = end - ApiClock::now() + kSpent;
  std::size_t at = 0;
  while (at + 1 < kLimits.size() && kLimits[at + 1] <= left) ++at;
  return *servers_[index].clients[at];
}

bool ApiClients::is_tried(const etcd::SyncClient& client, ApiClock::time_point end) const {
  const auto channel = client.grpc_channel();
  while (true) {
    const grpc_connectivity_state state = channel->GetState(true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE) return true;
    if (!channel->WaitForStateChange(state, grpc_deadline(end))) return false;
  }
}

void ApiClients::pause(std::size_t index, std::chrono::milliseconds time) const {
  const auto channel = servers_[index].clients.front()->grpc_channel();
  (void)channel->WaitForStateChange(channel->GetState(true), grpc_deadline(ApiClock::now() + time));
}

Revision ApiClients::newest() const {
  const std::lock_guard lock(mutex_);
  return history_.newest();
}

Status ApiClients::check_revision(Revision revision, Revision before, const std::string& url) {
  const std::lock_guard lock(mutex_);
  return history_.check_revision(revision, before, url);
}

std::optional<CallFailure> ApiClients::cluster_failure(std::size_t index, etcd::SyncClient& client) {
  if (servers_[index].is_known) return std::nullopt;
  const etcd::Response answer = client.head();
  if (!answer.is_ok()) {
    // Whatever became of the question, the call itself was not sent.
    CallFailure failure = explain(answer.error_code(), answer.error_message(), url(index));
    if (failure.kind == CallFailure::Kind::kUnknown) {
      failure = {CallFailure::Kind::kNotExecuted, {ErrorCode::kUnavailable, failure.error.message, failure.error.hint}};
    }
    return failure;
  }
  const std::lock_guard lock(mutex_);
  const Status is_same = history_.check_cluster(answer.cluster_id(), url(index));
  if (!is_same) return CallFailure{CallFailure::Kind::kFinal, is_same.error()};
  servers_[index].is_known = true;
  return std::nullopt;
}

}  // namespace everstep::elastic
