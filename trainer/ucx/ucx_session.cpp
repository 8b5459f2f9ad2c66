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

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "trainer/ucx/frame_tag.h"
#include "trainer/ucx/payload_checksum.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kExplanationMs = 1000;

struct Sending {
  FrameBytes header{};
  Buffer payload;
  int parts = 0;  // not sent yet
};

struct Receiving {
  int from = 0;
  FrameHeader expected;
  Buffer into;
  FrameBytes header{};
  std::optional<WireFrame> frame;
  bool payload_is_here = false;

  bool complete() const { return frame.has_value() && payload_is_here; }
};

// Everything that UCX may still touch while an operation is under way.
struct Operations {
  std::unique_ptr<UcxEngine> engine;
  std::list<Sending> sends;
  std::map<ReceiveId, Receiving> receives;
};

// A thread that sleeps until a descriptor becomes readable or another thread wakes it.
class Sleeper {
 public:
  Sleeper() { wake_for(wake_.get()); }

  void wake_for(int descriptor) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    EVERSTEP_CHECK(::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl failed");
  }

  void wake() { EVERSTEP_CHECK(::eventfd_write(wake_.get(), 1) == 0, "eventfd_write failed"); }

  // A negative limit is none.
  void sleep(std::chrono::milliseconds limit) {
    epoll_event event{};
    ::epoll_wait(events_.get(), &event, 1, static_cast<int>(std::min<std::int64_t>(limit.count(), kLongestSleepMs)));
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
  }

 private:
  static constexpr std::int64_t kLongestSleepMs = 1'000'000;

  FileDescriptor wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  FileDescriptor events_{::epoll_create1(EPOLL_CLOEXEC)};
};

class UcxSession final : public Transport {
 public:
  UcxSession(int worker, int workers, std::unique_ptr<UcxEngine> ucx, Lifelines lifelines)
      : worker_(worker),
        workers_(workers),
        operations_(new Operations{std::move(ucx), {}, {}}),
        lifelines_(std::move(lifelines)),
        sent_(workers),
        posted_(workers) {
    for (Sleeper* sleeper : {&service_sleeper_, &caller_sleeper_}) {
      sleeper->wake_for(engine().descriptor());
      sleeper->wake_for(lifelines_.descriptor());
    }
    service_ = std::thread([this] { serve(); });
  }

  ~UcxSession() override {
    stop_service();
    // See UcxEngine: what is under way after a failure cannot be ended safely, and peers that have not noticed the end
    // of this transport may still read or write these buffers. Some descriptors and less than a megabyte per failure,
    // beside the buffers, are the price. Without receives and sends there is nothing left to go wrong.
    if (!closed_) static_cast<void>(operations_.release());
  }

  UcxSession(const UcxSession&) = delete;
  UcxSession& operator=(const UcxSession&) = delete;

  int worker() const override { return worker_; }
  int workers() const override { return workers_; }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    const FrameBytes bytes = encode_frame({header, payload_checksum(payload)});
    const std::lock_guard lock(mutex_);
    if (is_broken()) return;
    const std::uint64_t sequence = sent_[to][static_cast<std::size_t>(channel)]++;
    const auto sending = operations_->sends.insert(operations_->sends.end(), {bytes, std::move(payload), 0});
    const std::span<const std::byte> body(sending->payload.data, sending->payload.size);
    sending->parts = body.empty() ? 1 : 2;
    const auto sent = [this, sending](const Result<std::size_t>& outcome) {
      if (!outcome) return lost_a_peer(outcome.error());
      if (--sending->parts == 0) operations_->sends.erase(sending);
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
                     [this, &receiving](const Result<std::size_t>& bytes) { header_came(receiving, bytes); });
    if (receiving.into.empty()) {
      receiving.payload_is_here = true;
    } else {
      engine().receive(frame_tag(from, channel, FramePart::kPayload, sequence), receiving.into.as<std::byte>(),
                       [this, &receiving](const Result<std::size_t>& bytes) { payload_came(receiving, bytes); });
    }
    engine().settle();
    return id;
  }

  bool ready(ReceiveId receive) override {
    const std::lock_guard lock(mutex_);
    return error_ || find(receive).complete();
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const Receiving& receiving = find(receive);
    if (!wait_until(lock, timeout, [&] { return receiving.complete(); })) {
      fail({ErrorCode::kDeadlineExceeded,
            "the " + to_string(receiving.expected) + " did not come from worker " + std::to_string(receiving.from) +
                " within " + std::to_string(timeout.count()) + " ms",
            "is that worker stopped or overloaded?"});
    }
    if (error_) return *error_;
    const Receiving received = std::move(operations_->receives.extract(receive).mapped());
    lock.unlock();
    if (payload_checksum(received.into) == received.frame->payload_checksum) return received.frame->header;
    lock.lock();
    fail({ErrorCode::kInternal,
          "the " + to_string(received.expected) + " from worker " + std::to_string(received.from) +
              " was damaged on its way",
          {}});
    return *error_;
  }

  Status flush(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!wait_until(lock, timeout, [this] { return operations_->sends.empty(); })) {
      fail({ErrorCode::kDeadlineExceeded,
            std::to_string(operations_->sends.size()) + " frames were not taken within " +
                std::to_string(timeout.count()) + " ms",
            {}});
    }
    return outcome();
  }

  Status status() override {
    const std::lock_guard lock(mutex_);
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
    lifelines_.say_goodbye();
    if (!wait_until(lock, timeout, [this] { return lifelines_.all_said_goodbye(); })) {
      fail({ErrorCode::kDeadlineExceeded,
            "worker " + std::to_string(lifelines_.first_still_here()) + " did not say goodbye within " +
                std::to_string(timeout.count()) + " ms",
            {}});
    }
    if (error_) return *error_;
    // A receive that was posted and never came belongs to a program that ended early; UCX would complain.
    closed_ = operations_->receives.empty();
    lock.unlock();
    stop_service();
    return {};
  }

 private:
  using Counters = std::vector<std::array<std::uint64_t, kChannels>>;

  UcxEngine& engine() { return *operations_->engine; }

  Status outcome() const { return error_ ? Status(*error_) : Status(); }

  const Receiving& find(ReceiveId receive) const {
    const auto found = operations_->receives.find(receive);
    EVERSTEP_CHECK(found != operations_->receives.end(), "a receive is waited for that was not posted or is over");
    return found->second;
  }

  // The first error stays. UCX is never touched again.
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
    caller_sleeper_.wake();
    wake_service();
    failed_.notify_all();
  }

  // UCX must not be touched any more.
  bool is_broken() const { return error_ || suspicion_; }

  // A transfer fails when its peer dies, and UCX may know that before the lifeline does. Who died is worth a moment.
  void lost_a_peer(Error error) {
    if (!suspicion_) suspicion_ = std::move(error);
    wake_service();
  }

  void header_came(Receiving& receiving, const Result<std::size_t>& bytes) {
    const auto garbage = [&](const Error& error) {
      fail({ErrorCode::kInternal, "worker " + std::to_string(receiving.from) + " sent garbage: " + error.message,
            error.hint});
    };
    if (!bytes && bytes.error().code == ErrorCode::kUnavailable) return lost_a_peer(bytes.error());
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
    if (!bytes && bytes.error().code == ErrorCode::kUnavailable) return lost_a_peer(bytes.error());
    fail({ErrorCode::kInternal,
          "the payload of the " + to_string(receiving.expected) + " from worker " + std::to_string(receiving.from) +
              " is refused: " + (bytes ? "it is shorter than expected" : bytes.error().message),
          {}});
  }

  // Whether the condition came true, or an error came, in time. The caller meanwhile does the service thread's work: to
  // be woken by the event itself, and not by a thread that was, halves the way of a frame.
  template <typename Condition>
  bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, Condition condition) {
    const auto done = [&] { return error_ || condition(); };
    if (done()) return true;
    const auto deadline = Clock::now() + timeout;
    caller_drives_ = true;
    service_sleeper_.wake();
    while (true) {
      const bool may_sleep = is_broken() || drive();
      if (suspicion_) failed_.wait(lock, [this] { return error_.has_value(); });  // the service thread finds out why
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
    if (const Status alive = lifelines_.poll(); !alive) {
      fail(alive.error());
      return true;
    }
    return engine().arm();
  }

  // The service thread: drives while the caller computes.
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      service_turn_.wait(lock, [this] { return !caller_drives_ || stopping_ || is_broken(); });
      if (stopping_ || error_) return;
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
    pollfd lifelines{lifelines_.descriptor(), POLLIN, 0};
    ::poll(&lifelines, 1, kExplanationMs);
    const std::lock_guard lock(mutex_);
    const Status alive = lifelines_.poll();
    fail(alive ? *suspicion_ : alive.error());
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

  std::mutex mutex_;  // guards all below, UCX included
  std::condition_variable service_turn_;
  std::condition_variable failed_;
  bool caller_drives_ = false;
  std::unique_ptr<Operations> operations_;
  Lifelines lifelines_;
  Counters sent_;
  Counters posted_;
  ReceiveId next_id_ = 1;
  std::optional<Error> error_;
  std::optional<Error> suspicion_;  // a peer is gone, and we do not know yet which
  bool stopping_ = false;
  bool closed_ = false;

  std::thread service_;
};

}  // namespace

std::unique_ptr<Transport> make_ucx_session(int worker, int workers, std::unique_ptr<UcxEngine> engine,
                                            Lifelines lifelines) {
  return std::make_unique<UcxSession>(worker, workers, std::move(engine), std::move(lifelines));
}

}  // namespace everstep::trainer
