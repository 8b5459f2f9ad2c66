#include "trainer/ucx/ucx_transport.h"

#include <utility>

#include "base/log_line.h"
#include "trainer/ucx/lifeline/handshake.h"
#include "trainer/ucx/lifeline/lifelines.h"
#include "trainer/ucx/network_device.h"
#include "trainer/ucx/ucx_engine.h"
#include "trainer/ucx/ucx_session.h"

namespace everstep::trainer {
namespace {

Result<HandshakeRequest> make_request(const UcxGroup& group, const UcxOptions& options) {
  EVERSTEP_CHECK(group.worker >= 0 && group.worker < static_cast<int>(group.members.size()),
                 "a worker connects a group that it is no member of");
  HandshakeRequest request{group.worker, {}, {}, options.seal, options.log};
  for (const UcxMember& member : group.members) {
    Result<LifelineAddress> address = parse_lifeline_address(member.address);
    if (!address) return address.error();
    request.members.push_back({member.id, std::move(address).value(), member.name});
  }
  return request;
}

class Listener final : public UcxListener {
 public:
  Listener(ListeningSocket listening, UcxEngineOptions engine, const UcxOptions& options)
      : options_(options),
        engine_(std::move(engine)),
        address_(to_text({options.advertise.empty() ? options.bind : options.advertise, listening.address.port})),
        reaper_(std::make_shared<UcxReaper>()),
        port_(std::move(listening.socket), options.log) {
    if (!options_.seal) options_.seal = unkeyed_seal;
  }

  const std::string& address() const override { return address_; }

  UcxOutcome connect(const UcxGroup& group, std::chrono::milliseconds timeout) override {
    Result<HandshakeRequest> request = make_request(group, options_);
    if (!request) return {request.error()};
    const auto inbox = port_.open({group.lineage, group.generation, group.nonce});
    if (!inbox) return {inbox.error()};
    UcxOutcome outcome = connect(**inbox, std::move(request).value(), timeout);
    port_.close(**inbox);
    return outcome;
  }

  void give_up(Generation generation, std::uint32_t nonce) override { port_.give_up(generation, nonce); }

  std::int64_t fenced() const override { return port_.fenced(); }

 private:
  UcxOutcome connect(CallInbox& inbox, HandshakeRequest request, std::chrono::milliseconds timeout) {
    Result<std::unique_ptr<UcxEngine>> made = UcxEngine::create(engine_);
    if (!made) return {made.error()};
    std::unique_ptr<UcxEngine> engine = std::move(made).value();
    UcxOutcome outcome = connect(inbox, std::move(request), timeout, engine);
    if (engine) reaper_->keep_reachable(std::move(engine));
    return outcome;
  }

  // The engine is taken if all goes well.
  UcxOutcome connect(CallInbox& inbox, HandshakeRequest request, std::chrono::milliseconds timeout,
                     std::unique_ptr<UcxEngine>& engine) {
    Result<std::string> ucx = engine->address();
    if (!ucx) return {ucx.error()};
    request.ucx_address = std::move(ucx).value();
    HandshakeOutcome hands = shake_hands(inbox, request, timeout);
    if (!hands.peers) return {hands.peers.error(), hands.lost};
    const auto workers = static_cast<int>(request.members.size());
    auto lifelines = std::make_shared<Lifelines>(std::move(hands.peers->sockets));
    if (const Status alive = lifelines->poll(); !alive) return {alive.error(), lifelines->lost()};
    if (const auto gone = first_that_left(*lifelines, workers)) {
      return {Error{ErrorCode::kUnavailable, "worker " + std::to_string(*gone) + " gave this try up", {}},
              LostPeer{*gone, LostPeer::How::kRefused}};
    }
    if (const Status connected = engine->connect(hands.peers->ucx_addresses); !connected) return {connected.error()};
    return {UcxConnection{make_ucx_session(request.worker, workers, std::move(engine), lifelines, reaper_), lifelines}};
  }

  static std::optional<int> first_that_left(const Lifelines& lifelines, int workers) {
    for (int worker = 0; worker < workers; ++worker) {
      if (lifelines.has_left(worker)) return worker;
    }
    return std::nullopt;
  }

  UcxOptions options_;
  UcxEngineOptions engine_;
  std::string address_;
  std::shared_ptr<UcxReaper> reaper_;
  LifelinePort port_;
};

}  // namespace

Result<std::unique_ptr<UcxListener>> UcxListener::listen(const UcxOptions& options) {
  Result<ListeningSocket> listening = listen_for_lifelines({options.bind, options.first_port, options.last_port});
  if (!listening) return listening.error();
  const Result<std::string> device = device_with_address(options.bind);
  if (!device) return device.error();
  const bool read_memory = may_read_other_processes();
  if (!read_memory && options.log) {
    options.log(LogLine("transport_slower")
                    .add("reason", "the kernel does not let processes read each other's memory")
                    .add("hint", "sysctl kernel.yama.ptrace_scope=0")
                    .text());
  }
  return std::unique_ptr<UcxListener>(
      std::make_unique<Listener>(std::move(listening).value(), UcxEngineOptions{*device, read_memory}, options));
}

}  // namespace everstep::trainer
