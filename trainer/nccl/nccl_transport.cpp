#include "trainer/nccl/nccl_transport.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/nccl/nccl_traffic.h"
#include "trainer/wire/transport_failure.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The host's wire says within this time whether a peer with which NCCL failed has died.
constexpr auto kTimeToExplain = 2s;

std::chrono::milliseconds left_until(Clock::time_point deadline) {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()), 0ms);
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(NcclMesh& mesh, Transport& host, Transport& others, const NcclTransportOptions& options)
      : mesh_(mesh),
        host_(host),
        others_(others),
        options_(options),
        traffic_(std::in_place, mesh, host, options.lineage, options.generation) {
    if (!mesh.peers().empty()) service_ = std::thread([this] { serve(); });
  }

  ~NcclTransport() override { end_links(); }

  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  int worker() const override { return host_.worker(); }
  int workers() const override { return host_.workers(); }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    {
      const std::lock_guard lock(mutex_);
      if (goes_by_nccl(to, channel, payload)) {
        EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
        traffic_->take_over_sent();
        const auto is_ready = mesh_.device().event_on(options_.compute);
        if (!is_ready) return fail(is_ready.error());
        traffic_->send(to, channel, std::move(payload), *is_ready);
        changed_.notify_all();
        host_.send(to, channel, NcclTraffic::notice_header(header), NcclTraffic::encode_notice(header));
        return;
      }
    }
    others_.send(to, channel, header, std::move(payload));
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    EVERSTEP_CHECK(expected.length == into.size, "the expected length is not the buffer's size");
    const std::lock_guard lock(mutex_);
    if (!goes_by_nccl(from, channel, into)) {
      const ReceiveId id = others_.post_receive(from, channel, expected, std::move(into));
      others_receives_.emplace(id, Awaited{from, expected});
      return id;
    }
    const auto is_free = mesh_.device().event_on(options_.compute);
    if (!is_free) fail(is_free.error());
    changed_.notify_all();
    return traffic_->receive(from, channel, expected, std::move(into), is_free ? *is_free : nullptr);
  }

  bool ready(ReceiveId receive) override {
    const std::lock_guard lock(mutex_);
    watch_host();
    return is_over(receive);
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const Awaited awaited = awaited_by(receive);
    const bool in_time = poll_until(lock, Clock::now() + timeout, [&] { return is_over(receive); });
    traffic_->take_over_sent();
    if (!in_time) {
      fail({ErrorCode::kDeadlineExceeded,
            "the " + to_string(awaited.expected) + " did not come from worker " + std::to_string(awaited.from) +
                " within " + std::to_string(timeout.count()) + " ms",
            "is that worker stopped or overloaded?"},
           LostPeer{awaited.from, LostPeer::How::kSilent});
    }
    if (const Error* error = failure_.with(awaited.from)) return *error;
    return by_nccl(receive) ? take(receive) : take_from_others(receive);
  }

  Status flush(std::chrono::milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    EVERSTEP_TRY(wait_until_sent(deadline, timeout));
    return outcome_of(others_.flush(left_until(deadline)));
  }

  Status status() override {
    const std::lock_guard lock(mutex_);
    watch_host();
    return failure_.outcome(worker());
  }

  std::optional<LostPeer> lost() const override {
    const std::lock_guard lock(mutex_);
    return failure_.lost() ? failure_.lost() : host_.lost();
  }

  void need_only(const std::vector<int>& peers) override {
    const std::lock_guard lock(mutex_);
    failure_.need_only(peers);
    others_.need_only(peers);
  }

  Status go_on() override {
    std::unique_lock lock(mutex_);
    watch_host();
    traffic_->take_over_sent();
    failure_.go_on();
    // What transfers of lost peers worked on is used again.
    for (NcclDevice::Ended& ended : std::exchange(ended_, {})) {
      lock.unlock();
      const std::vector<NcclEvent> events = ended.get();
      lock.lock();
      for (const NcclEvent& event : events) {
        static_cast<void>(api().stream_wait_event(options_.compute, event.get()));
        static_cast<void>(api().event_query(event.get()));
      }
    }
    return failure_.outcome(worker());
  }

  void abort(Error reason) override {
    others_.abort(std::move(reason));
    changed_.notify_all();
  }

  Status close(std::chrono::milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    EVERSTEP_TRY(wait_until_sent(deadline, timeout));
    end_links();
    return outcome_of(others_.close(left_until(deadline)));
  }

  void leave() override {
    end_links();
    others_.leave();
  }

  void break_off() override {
    end_links();
    others_.break_off();
  }

 private:
  struct Awaited {
    int from = 0;
    FrameHeader expected;
  };

  const NcclApi& api() const { return mesh_.device().api(); }
  static bool by_nccl(ReceiveId receive) { return receive >= NcclTraffic::kFirst && receive < 2 * NcclTraffic::kFirst; }
  bool goes_by_nccl(int peer, Channel channel, const Buffer& payload) const {
    return payload.on_device() && traffic_ && traffic_->has(peer, channel);
  }

  Awaited awaited_by(ReceiveId receive) {
    if (by_nccl(receive)) {
      const NcclTraffic::Receive& found = traffic_->find(receive);
      return {found.from, found.expected};
    }
    const auto found = others_receives_.find(receive);
    EVERSTEP_CHECK(found != others_receives_.end(), "a receive is waited for that was not posted or is over");
    return found->second;
  }

  bool is_over(ReceiveId receive) {
    if (failure_.with(awaited_by(receive).from) != nullptr) return true;
    if (!by_nccl(receive)) return others_.ready(receive);
    const NcclTraffic::Receive& found = traffic_->find(receive);
    return found.over != nullptr || found.error;
  }

  // What is computed from now on finds the payload.
  Result<FrameHeader> take(ReceiveId id) {
    NcclTraffic::Receive& receive = traffic_->find(id);
    if (receive.error) return *receive.error;
    const Status ordered = check_nccl(api().stream_wait_event(options_.compute, receive.over), "waiting for an event");
    static_cast<void>(api().event_query(receive.over));  // this thread may free the buffer
    api().event_destroy(receive.over);
    const FrameHeader header = *receive.came;
    traffic_->forget(id);
    if (!ordered) return ordered.error();
    return header;
  }

  Result<FrameHeader> take_from_others(ReceiveId receive) {
    auto header = others_.wait(receive, 0ms);
    if (!header) return header;
    others_receives_.erase(receive);
    EVERSTEP_TRY(traffic_->compute_after_sends(options_.compute));
    return header;
  }

  Status outcome_of(const Status& of_others) {
    const std::lock_guard lock(mutex_);
    watch_host();
    const Status outcome = failure_.outcome(worker());
    return outcome ? of_others : outcome;
  }

  // The first error stays.
  void fail(Error error, std::optional<LostPeer> lost = {}) {
    failure_.end(error, lost);
    changed_.notify_all();
    host_.abort(std::move(error));
  }

  // What ended or interrupted the host's wire does the same to this transport. The host goes on at once, since credits
  // between those who are needed travel there; the caller is told of the interruption until it goes on itself.
  void watch_host() {
    const Status host = host_.status();
    if (host || failure_.ended()) return;
    const std::optional<LostPeer> lost = host_.lost();
    if (failure_.is_interrupted() || failure_.needed().empty() || !lost || !host_.go_on()) {
      failure_.end(host.error(), lost);
    } else {
      failure_.interrupt(host.error(), *lost);
      lose_all_others(host.error());
    }
    changed_.notify_all();
  }

  void lose_all_others(const Error& error) {
    for (const int peer : mesh_.peers()) {
      if (failure_.needs(peer)) continue;
      NcclDevice::Ended ended = mesh_.device().end_for_use(traffic_->lose(peer, error));
      if (ended.valid()) ended_.push_back(std::move(ended));
    }
  }

  void serve() {
    mesh_.device().enter_thread();
    std::unique_lock lock(mutex_);
    while (!is_stopping_ && !failure_.ended()) {
      watch_host();
      if (!failure_.ended()) move_on();
      if (traffic_->is_quiet()) {
        changed_.wait(lock);
      } else {
        lock.unlock();
        std::this_thread::sleep_for(options_.poll);
        lock.lock();
      }
    }
  }

  void move_on() {
    const auto came = traffic_->advance();
    if (!came) {
      // Either it is the host's, which may be an interruption since it was asked last, or it is of what came.
      const bool was_interrupted = failure_.is_interrupted();
      watch_host();
      if (failure_.is_interrupted() == was_interrupted) fail(came.error());
      return;
    }
    if (*came || traffic_->all_sent()) changed_.notify_all();
    const auto& broken = traffic_->broken();
    if (broken && Clock::now() > broken->since + kTimeToExplain) {
      fail(broken->error, LostPeer{broken->peer, LostPeer::How::kSilent});
    }
  }

  template <typename Condition>
  bool poll_until(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, Condition condition) {
    while (true) {
      watch_host();
      if (condition()) return true;
      if (Clock::now() >= deadline) return false;
      changed_.wait_for(lock, options_.poll);
    }
  }

  Status wait_until_sent(Clock::time_point deadline, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto is_over = [this] { return failure_.with(worker()) != nullptr || !traffic_ || traffic_->all_sent(); };
    if (!poll_until(lock, deadline, is_over)) {
      fail({ErrorCode::kDeadlineExceeded,
            "frames were not taken within " + std::to_string(timeout.count()) + " ms",
            {}});
    }
    if (traffic_) traffic_->take_over_sent();
    return failure_.outcome(worker());
  }

  // Beside the caller.
  void end_links() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    if (service_.joinable()) service_.join();
    traffic_.reset();
    mesh_.end(host_.status() ? NcclDevice::How::kInOrder : NcclDevice::How::kAtOnce);
  }

  NcclMesh& mesh_;
  Transport& host_;
  Transport& others_;
  const NcclTransportOptions options_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::optional<NcclTraffic> traffic_;  // nothing: it has ended
  std::map<ReceiveId, Awaited> others_receives_;
  TransportFailure failure_;
  std::vector<NcclDevice::Ended> ended_;  // of lost peers
  bool is_stopping_ = false;

  std::thread service_;
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(NcclMesh& mesh, Transport& host, Transport& others,
                                               const NcclTransportOptions& options) {
  return std::make_unique<NcclTransport>(mesh, host, others, options);
}

}  // namespace everstep::trainer
