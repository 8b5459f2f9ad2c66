#include "trainer/ucx/ucx_session.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/transport_failure.h"
#include "trainer/ucx/frame_tag.h"
#include "trainer/ucx/payload_checksum.h"
#include "trainer/ucx/sleeper.h"
#include "trainer/ucx/ucx_operations.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kExplanation{1};

class UcxSession;

// Everything that UCX may still touch while an operation is under way; it may outlive the session.
struct Operations {
  UcxSession* session = nullptr;  // hears how operations end, until it is gone
  std::list<Sending> sends;
  std::map<ReceiveId, Receiving> receives;
  std::unique_ptr<UcxEngine> engine;  // last: it goes first, and may end operations then
};

class UcxSession final : public Transport {
 public:
  UcxSession(int worker, int workers, std::unique_ptr<UcxEngine> ucx, std::shared_ptr<Lifelines> lifelines,
             std::shared_ptr<UcxReaper> reaper)
      : worker_(worker),
        workers_(workers),
        reaper_(std::move(reaper)),
        operations_(new Operations{this, {}, {}, std::move(ucx)}),
        lifelines_(std::move(lifelines)),
        sent_(workers),
        posted_(workers) {
    for (Sleeper* sleeper : {&service_sleeper_, &caller_sleeper_}) {
      sleeper->wake_for(engine().descriptor());
      sleeper->wake_for(lifelines_->descriptor());
    }
    service_ = std::thread([this] { serve(); });
  }

  ~UcxSession() override {
    stop_service();
    // See UcxEngine: what is under way after a failure cannot be ended safely, and peers that have not noticed the end
    // of this transport may still read or write these buffers. The reaper waits until all have left.
    operations_->session = nullptr;
    if (!left_) lifelines_->hang_up();
    reaper_->take({std::move(operations_), lifelines_, left_});
  }

  UcxSession(const UcxSession&) = delete;
  UcxSession& operator=(const UcxSession&) = delete;

  int worker() const override { return worker_; }
  int workers() const override { return workers_; }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    const FrameBytes bytes = encode_frame({header, payload_checksum(payload)});
    const std::lock_guard lock(mutex_);
    if (is_broken() || (failure_.is_interrupted() && !failure_.needs(to))) return;
    const std::uint64_t sequence = sent_[to][static_cast<std::size_t>(channel)]++;
    if (to != worker_ && lifelines_->has_left(to)) {
      if (failure_.goes_on()) return;
      return fail({ErrorCode::kUnavailable,
                   "the " + to_string(header) + " is for worker " + std::to_string(to) + ", which has left",
                   {}},
                  LostPeer{to, LostPeer::How::kRefused});
    }
    const auto sending = operations_->sends.insert(operations_->sends.end(), {to, bytes, std::move(payload), 0});
    const std::span<const std::byte> body(sending->payload.data, sending->payload.size);
    sending->parts = body.empty() ? 1 : 2;
    const auto sent = [operations = operations_.get(), sending](const Result<std::size_t>& outcome) {
      if (!outcome && operations->session != nullptr) operations->session->lost_a_peer(sending->to, outcome.error());
      if (outcome && --sending->parts == 0) operations->sends.erase(sending);
    };
    engine().send(to, frame_tag(worker_, channel, FramePart::kHeader, sequence), sending->header, sent);
    if (!body.empty()) engine().send(to, frame_tag(worker_, channel, FramePart::kPayload, sequence), body, sent);
    engine().settle();
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    EVERSTEP_CHECK(expected.length == into.size, "the expected length is not the buffer's size");
    const std::lock_guard lock(mutex_);
    const ReceiveId id = next_id_++;
    Receiving& receiving = operations_->receives[id];
    receiving.from = from;
    receiving.expected = expected;
    receiving.into = std::move(into);
    if (is_broken()) return id;
    const std::uint64_t sequence = posted_[from][static_cast<std::size_t>(channel)]++;
    engine().receive(frame_tag(from, channel, FramePart::kHeader, sequence), receiving.header,
                     if_here(&UcxSession::header_came, receiving));
    if (receiving.into.empty()) {
      receiving.payload_is_here = true;
    } else {
      engine().receive(frame_tag(from, channel, FramePart::kPayload, sequence), receiving.into.as<std::byte>(),
                       if_here(&UcxSession::payload_came, receiving));
    }
    engine().settle();
    return id;
  }

  bool ready(ReceiveId receive) override {
    const std::lock_guard lock(mutex_);
    const Receiving& receiving = find(receive);
    return failure_.with(receiving.from) != nullptr || receiving.complete();
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const Receiving& receiving = find(receive);
    if (!wait_until(lock, timeout, [&] { return receiving.complete() || failure_.with(receiving.from) != nullptr; })) {
      fail(receiving.late_after(timeout), LostPeer{receiving.from, LostPeer::How::kSilent});
    }
    if (const Error* error = failure_.with(receiving.from)) return *error;
    const Receiving received = std::move(operations_->receives.extract(receive).mapped());
    lock.unlock();
    if (payload_checksum(received.into) == received.frame->payload_checksum) return received.frame->header;
    lock.lock();
    fail(received.damaged());
    return *failure_.ended();
  }

  Status flush(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!wait_until(lock, timeout, [this] { return !outcome() || nothing_is_left_to_send(); })) {
      fail({ErrorCode::kDeadlineExceeded,
            std::to_string(operations_->sends.size()) + " frames were not taken within " +
                std::to_string(timeout.count()) + " ms",
            {}},
           LostPeer{operations_->sends.front().to, LostPeer::How::kSilent});
    }
    return outcome();
  }

  Status status() override {
    const std::lock_guard lock(mutex_);
    return outcome();
  }

  std::optional<LostPeer> lost() const override {
    const std::lock_guard lock(mutex_);
    return failure_.lost();
  }

  void need_only(const std::vector<int>& peers) override {
    const std::lock_guard lock(mutex_);
    failure_.need_only(peers);
  }

  Status go_on() override {
    const std::lock_guard lock(mutex_);
    failure_.go_on();
    return outcome();
  }

  void abort(Error reason) override {
    const std::lock_guard lock(mutex_);
    reason.code = ErrorCode::kCancelled;
    fail(std::move(reason));
  }

  Status close(std::chrono::milliseconds timeout) override {
    EVERSTEP_TRY(flush(timeout));
    std::unique_lock lock(mutex_);
    lifelines_->say_goodbye();
    if (!wait_until(lock, timeout, [this] { return !outcome() || lifelines_->first_still_here() < 0; })) {
      fail({ErrorCode::kDeadlineExceeded,
            "worker " + std::to_string(lifelines_->first_still_here()) + " did not say goodbye within " +
                std::to_string(timeout.count()) + " ms",
            {}},
           LostPeer{lifelines_->first_still_here(), LostPeer::How::kSilent});
    }
    EVERSTEP_TRY(outcome());
    left_ = true;
    lock.unlock();
    stop_service();
    return {};
  }

  void leave() override {
    const std::lock_guard lock(mutex_);
    lifelines_->say_goodbye();
    left_ = true;
  }

  void break_off() override {
    const std::lock_guard lock(mutex_);
    lifelines_->break_off();
    left_ = true;
  }

 private:
  using Counters = std::vector<std::array<std::uint64_t, kChannels>>;

  UcxEngine& engine() { return *operations_->engine; }

  Status outcome() const { return failure_.outcome(worker_); }

  bool nothing_is_left_to_send() const {
    return std::none_of(operations_->sends.begin(), operations_->sends.end(),
                        [this](const Sending& sending) { return !failure_.goes_on() || failure_.needs(sending.to); });
  }

  const Receiving& find(ReceiveId receive) const {
    const auto found = operations_->receives.find(receive);
    EVERSTEP_CHECK(found != operations_->receives.end(), "a receive is waited for that was not posted or is over");
    return found->second;
  }

  using Came = void (UcxSession::*)(Receiving&, const Result<std::size_t>&);

  // Calls this session back, unless it is gone by then.
  UcxDone if_here(Came came, Receiving& receiving) {
    return [operations = operations_.get(), came, &receiving](const Result<std::size_t>& bytes) {
      if (operations->session != nullptr) (operations->session->*came)(receiving, bytes);
    };
  }

  // The first error stays. UCX is never touched again.
  void fail(Error error, std::optional<LostPeer> lost = {}) {
    failure_.end(std::move(error), lost);
    caller_sleeper_.wake();
    wake_service();
    failed_.notify_all();
  }

  // Looks who died. Whether the transport has not ended with it.
  bool survives_all_deaths() {
    const Status alive = lifelines_->poll();
    if (alive) return true;
    const std::optional<LostPeer> lost = lifelines_->lost();
    if (!lost || failure_.needed().empty() || lifelines_->any_dead(failure_.needed())) {
      fail(alive.error(), lost);
      return false;
    }
    if (failure_.is_interrupted()) return true;
    failure_.interrupt(alive.error(), *lost);
    caller_sleeper_.wake();
    return true;
  }

  // UCX must not be touched any more.
  bool is_broken() const { return failure_.ended() || suspicion_; }

  // A transfer fails when its peer dies, and UCX may know that before the lifeline does. Who died is worth a moment,
  // unless it is somebody who is not needed.
  void lost_a_peer(int worker, const Error& error) {
    if (!failure_.needs(worker)) {
      failure_.interrupt(error, {worker, LostPeer::How::kClosed});
      return caller_sleeper_.wake();
    }
    if (!suspicion_) suspicion_ = FailedTransfer{error, worker};
    wake_service();
  }

  void header_came(Receiving& receiving, const Result<std::size_t>& bytes) {
    const auto garbage = [&](const Error& error) {
      fail({ErrorCode::kInternal, "worker " + std::to_string(receiving.from) + " sent garbage: " + error.message,
            error.hint});
    };
    if (!bytes && bytes.error().code == ErrorCode::kUnavailable) return lost_a_peer(receiving.from, bytes.error());
    if (!bytes) return garbage(bytes.error());
    const Result<WireFrame> frame = decode_frame(std::span(receiving.header).first(*bytes));
    if (!frame) return garbage(frame.error());
    if (const Status expected = check_frame(frame->header, receiving.expected); !expected) {
      return fail(expected.error());
    }
    receiving.frame = *frame;
  }

  void payload_came(Receiving& receiving, const Result<std::size_t>& bytes) {
    if (bytes && *bytes == receiving.into.size) {
      receiving.payload_is_here = true;
      return;
    }
    if (!bytes && bytes.error().code == ErrorCode::kUnavailable) return lost_a_peer(receiving.from, bytes.error());
    fail({ErrorCode::kInternal,
          "the payload of the " + to_string(receiving.expected) + " from worker " + std::to_string(receiving.from) +
              " is refused: " + (bytes ? "it is shorter than expected" : bytes.error().message),
          {}});
  }

  // Whether the condition came true, or an error came, in time. The caller meanwhile does the service thread's work: to
  // be woken by the event itself, and not by a thread that was, halves the way of a frame.
  template <typename Condition>
  bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, Condition condition) {
    const auto done = [&] { return failure_.ended() || condition(); };
    if (done()) return true;
    const auto deadline = Clock::now() + timeout;
    caller_drives_ = true;
    service_sleeper_.wake();
    while (true) {
      const bool may_sleep = is_broken() || drive();
      if (suspicion_)
        failed_.wait(lock, [this] { return failure_.ended().has_value(); });  // the service thread finds out why
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (done() || left.count() <= 0) break;
      lock.unlock();
      if (may_sleep) caller_sleeper_.sleep(left);
      lock.lock();
    }
    caller_drives_ = false;
    service_turn_.notify_one();
    return done();
  }

  // Does what there is to do. Whether nothing more will come unannounced.
  bool drive() {
    engine().progress();
    if (suspicion_) return true;
    return !survives_all_deaths() || engine().arm();
  }

  // The service thread: drives while the caller computes.
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      service_turn_.wait(lock, [this] { return !caller_drives_ || stopping_ || is_broken(); });
      if (stopping_ || failure_.ended()) return;
      const bool may_sleep = suspicion_ || drive();
      if (suspicion_) break;
      lock.unlock();
      if (may_sleep) service_sleeper_.sleep(std::chrono::milliseconds(-1));
      lock.lock();
    }
    lock.unlock();
    explain_suspicion();
  }

  void explain_suspicion() {
    const Status alive = lifelines_->wait_for_death(kExplanation);
    const std::lock_guard lock(mutex_);
    if (alive) return fail(suspicion_->error, LostPeer{suspicion_->with, LostPeer::How::kClosed});
    fail(alive.error(), lifelines_->lost());
  }

  // From its sleep or from waiting for its turn.
  void wake_service() {
    service_sleeper_.wake();
    service_turn_.notify_one();
  }

  void stop_service() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_service();
    if (service_.joinable()) service_.join();
  }

  const int worker_;
  const int workers_;
  Sleeper service_sleeper_;
  Sleeper caller_sleeper_;

  const std::shared_ptr<UcxReaper> reaper_;

  mutable std::mutex mutex_;  // guards all below, UCX included
  std::condition_variable service_turn_;
  std::condition_variable failed_;
  bool caller_drives_ = false;
  std::unique_ptr<Operations> operations_;
  std::shared_ptr<Lifelines> lifelines_;
  Counters sent_;
  Counters posted_;
  ReceiveId next_id_ = 1;
  TransportFailure failure_;
  std::optional<FailedTransfer> suspicion_;
  bool stopping_ = false;
  bool left_ = false;  // said goodbye or broke off

  std::thread service_;
};

}  // namespace

std::unique_ptr<Transport> make_ucx_session(int worker, int workers, std::unique_ptr<UcxEngine> engine,
                                            std::shared_ptr<Lifelines> lifelines, std::shared_ptr<UcxReaper> reaper) {
  return std::make_unique<UcxSession>(worker, workers, std::move(engine), std::move(lifelines), std::move(reaper));
}

}  // namespace everstep::trainer
