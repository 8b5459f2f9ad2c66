#include "trainer/socket/socket_session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>

#include "base/check.h"
#include "trainer/socket/channel_links.h"
#include "trainer/socket/event_flag.h"
#include "trainer/socket/handed_over.h"
#include "trainer/socket/own_frames.h"
#include "trainer/socket/posted_receives.h"
#include "trainer/socket/shared_failure.h"
#include "trainer/socket/suspects.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using Move = ChannelLink::Move;
using How = LostPeer::How;

// Names of events that are no link's.
constexpr std::uint64_t kWoken = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLifelineNews = kWoken - 1;

std::string worker_text(int worker) { return "worker " + std::to_string(worker); }

int poll_time(Clock::time_point until) {
  const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

class SocketSession final : public Transport {
 public:
  SocketSession(int worker, std::vector<ChannelStreams> channels, std::shared_ptr<Lifelines> lifelines,
                std::shared_ptr<ClosingStreams> closing)
      : worker_(worker),
        workers_(static_cast<int>(channels.size())),
        closing_(std::move(closing)),
        lifelines_(std::move(lifelines)),
        links_(std::move(channels), events_) {
    EVERSTEP_CHECK(events_.is_open(), "epoll_create1 failed");
    watch(wake_service_.descriptor(), kWoken);
    watch(lifelines_->descriptor(), kLifelineNews);
    service_ = std::thread([this] { serve(); });
  }

  ~SocketSession() override {
    stop_service();
    has_left_ ? links_.end_gently(*closing_) : lifelines_->hang_up();
  }

  SocketSession(const SocketSession&) = delete;
  SocketSession& operator=(const SocketSession&) = delete;

  int worker() const override { return worker_; }
  int workers() const override { return workers_; }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    if (!may_send_to(to, header)) return;
    if (to == worker_) {
      if (const Status matched = own_.send(channel, header, std::move(payload)); !matched) fail(matched.error());
      return;
    }
    ChannelLink& link = links_.with(to, channel);
    Move move = Move::kWait;
    {
      const std::lock_guard lock(link.mutex);
      const bool waits = link.has_output();
      link.queue(header, std::move(payload));
      // What is cheap leaves in this thread; to encrypt a large frame is worth another one.
      if (!waits) move = link.push(link.encrypts() ? link.quantum() : std::numeric_limits<std::size_t>::max());
      link.arm();
    }
    if (move == Move::kOver) suspect(to);
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    EVERSTEP_CHECK(expected.length == into.size, "the expected length is not the buffer's size");
    const auto posted = std::make_shared<Posted>();
    posted->from = from;
    posted->channel = channel;
    posted->expected = expected;
    posted->into = std::move(into);
    const ReceiveId id = receives_.add(posted);
    if (failure_.has_ended()) return id;
    if (from == worker_) {
      if (const Status matched = own_.post(posted); !matched) fail(matched.error());
      return id;
    }
    ChannelLink& link = links_.with(from, channel);
    Result<Move> move = Move::kIdle;
    {
      const std::lock_guard lock(link.mutex);
      link.post(posted);
      move = link.pull(link.quantum());  // it may be here already
      leave_to_service(link);
    }
    judge(move, from);
    return id;
  }

  bool ready(ReceiveId receive) override {
    const std::shared_ptr<Posted> posted = receives_.find(receive);
    return posted->complete || failure_.with(posted->from);
  }

  Result<FrameHeader> wait(ReceiveId receive, Milliseconds timeout) override {
    const std::shared_ptr<Posted> posted = receives_.find(receive);
    const bool came = posted->complete && !failure_.with(posted->from);
    if (!came && !read_until_complete(*posted, Clock::now() + timeout)) {
      fail(posted->late_after(timeout), LostPeer{posted->from, How::kSilent});
    }
    if (const std::optional<Error> error = failure_.with(posted->from)) return *error;
    receives_.forget(receive);
    return posted->came;
  }

  Status flush(Milliseconds timeout) override {
    std::optional<int> stuck;
    const bool flushed = wait_until(timeout, [&] {
      stuck = links_.first_with_output([this](int worker) { return failure_.waits_for_frames_to(worker); });
      return !stuck || !status();
    });
    if (!flushed) {
      fail({ErrorCode::kDeadlineExceeded,
            "frames for " + worker_text(*stuck) + " were not taken within " + std::to_string(timeout.count()) + " ms",
            {}},
           LostPeer{*stuck, How::kSilent});
    }
    return status();
  }

  Status status() override { return failure_.outcome(worker_); }
  std::optional<LostPeer> lost() const override { return failure_.lost(); }
  void need_only(const std::vector<int>& peers) override { failure_.need_only(peers); }
  Status go_on() override {
    failure_.go_on();
    return status();
  }

  void abort(Error reason) override {
    reason.code = ErrorCode::kCancelled;
    fail(std::move(reason));
  }

  Status close(Milliseconds timeout) override {
    EVERSTEP_TRY(flush(timeout));
    lifelines_->say_goodbye();
    if (!wait_until(timeout, [this] { return !status() || lifelines_->first_still_here() < 0; })) {
      const int last = lifelines_->first_still_here();
      fail({ErrorCode::kDeadlineExceeded,
            worker_text(last) + " did not say goodbye within " + std::to_string(timeout.count()) + " ms",
            {}},
           LostPeer{last, How::kSilent});
    }
    EVERSTEP_TRY(status());
    has_left_ = true;
    stop_service();
    return {};
  }

  void leave() override {
    lifelines_->say_goodbye();
    has_left_ = true;
  }

  void break_off() override {
    lifelines_->break_off();
    has_left_ = true;
  }

 private:
  void watch(int descriptor, std::uint64_t name) const {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = name}};
    EVERSTEP_CHECK(::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl failed");
  }

  bool may_send_to(int to, const FrameHeader& header) {
    if (!failure_.takes_frames_for(to)) return false;
    if (to == worker_ || !lifelines_->has_left(to)) return true;
    refuse_to_send(to, "the " + to_string(header) + " is");
    return false;
  }

  void refuse_to_send(int to, const std::string& what) {
    if (failure_.goes_on()) return;
    fail({ErrorCode::kUnavailable, what + " for " + worker_text(to) + ", which has left", {}},
         LostPeer{to, How::kRefused});
  }

  // The first error stays.
  void fail(Error error, std::optional<LostPeer> lost = {}) {
    failure_.end(std::move(error), lost);
    wake_caller_.raise();
    wake_service_.raise();
  }

  // After a try to move frames.
  void judge(const Result<Move>& move, int peer) {
    if (!move) return fail(move.error());
    if (*move == Move::kOver) suspect(peer);
  }

  void suspect(int worker) {
    suspects_.add(worker);
    wake_service_.raise();
  }

  // The caller's thread. Whether the receive is complete, or an error came, in time.
  bool read_until_complete(const Posted& posted, Clock::time_point deadline) {
    if (posted.from == worker_) {
      return wait_until(std::chrono::ceil<Milliseconds>(deadline - Clock::now()),
                        [&] { return posted.complete || failure_.with(worker_); });
    }
    ChannelLink& link = links_.with(posted.from, posted.channel);
    bool in_time = true;
    while (in_time && !failure_.with(posted.from) && !posted.complete) {
      Result<Move> move = Move::kWait;
      {
        const std::lock_guard lock(link.mutex);
        link.let_caller_read(true);
        move = link.pull(link.quantum());
        if (move && *move == Move::kWait) link.arm();  // for frames that leave; the other thread need not see this one
      }
      judge(move, posted.from);
      // It may be here, and the link wait for the next one.
      if (posted.complete || !move || *move == Move::kMore || *move == Move::kIdle) continue;
      in_time = sleep_until(deadline, *move == Move::kOver ? -1 : link.descriptor());
    }
    const std::lock_guard lock(link.mutex);
    link.let_caller_read(false);
    leave_to_service(link);
    return in_time || posted.complete;
  }

  // With the link's mutex. No event shows bytes of the next frame that came with the last one.
  void leave_to_service(ChannelLink& link) {
    link.arm();
    if (!link.has_hidden_input()) return;
    handed_over_.add(link.name());
    wake_service_.raise();
  }

  // The caller's thread; woken by `descriptor`, if that is one, and by wake_caller_.
  bool sleep_until(Clock::time_point deadline, int descriptor) {
    std::array<pollfd, 2> polled{pollfd{wake_caller_.descriptor(), POLLIN, 0}, pollfd{descriptor, POLLIN, 0}};
    const int count = ::poll(polled.data(), polled.size(), poll_time(deadline));
    if ((polled[0].revents & POLLIN) != 0) wake_caller_.lower();
    return count != 0 || Clock::now() < deadline;
  }

  // For what the service thread brings about.
  template <typename Condition>
  bool wait_until(Milliseconds timeout, Condition condition) {
    const auto deadline = Clock::now() + timeout;
    caller_listens_ = true;
    bool in_time = true;
    bool done = false;
    while (!(done = condition()) && in_time) in_time = sleep_until(deadline, -1);
    caller_listens_ = false;
    return done;
  }

  void serve() {
    std::array<epoll_event, 64> events{};
    std::set<std::uint64_t> busy;  // links that have more to move
    while (true) {
      const auto next_look = suspects_.next();
      const int time = !busy.empty() ? 0 : next_look ? poll_time(*next_look) : -1;
      const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), time);
      if (is_stopping_ || failure_.has_ended()) return;
      std::set<std::uint64_t> moving = std::exchange(busy, {});  // each once, however often it was named
      for (int i = 0; i < count; ++i) {
        const std::uint64_t name = events[i].data.u64;
        if (name == kWoken) wake_service_.lower();
        if (name == kLifelineNews) look_for_deaths();
        if (name < kLifelineNews) moving.insert(name);
      }
      moving.merge(handed_over_.take());
      for (const std::uint64_t link : moving) {
        if (move_frames(link)) busy.insert(link);
      }
      explain_suspicions();
      if (caller_listens_) wake_caller_.raise();
    }
  }

  // Whether there is more.
  bool move_frames(std::uint64_t number) {
    ChannelLink& link = links_.at(number);
    Result<Move> pulled = Move::kIdle;
    Move pushed = Move::kIdle;
    bool more = false;
    {
      const std::lock_guard lock(link.mutex);
      link.disarmed();
      pushed = link.push(link.quantum());
      if (link.service_reads()) pulled = link.pull(link.quantum());
      more = pulled && (pushed == Move::kMore || *pulled == Move::kMore);
      if (pulled && !more) link.arm();
    }
    judge(pushed, ChannelLinks::worker_of(number));
    judge(pulled, ChannelLinks::worker_of(number));
    return more;
  }

  void look_for_deaths() {
    const Status alive = lifelines_->poll();
    if (alive) return;
    const std::optional<LostPeer> lost = lifelines_->lost();
    if (!lost) return fail(alive.error());
    lose(alive.error(), *lost, [this](const TransportFailure& failure) {
      return failure.needed().empty() || lifelines_->any_dead(failure.needed());
    });
  }

  template <typename IsNeeded>
  void lose(const Error& error, const LostPeer& lost, IsNeeded is_needed) {
    failure_.lose(error, lost, is_needed);
    wake_caller_.raise();
  }

  void explain_suspicions() {
    const auto suspects = suspects_.all();
    if (suspects.empty()) return;
    look_for_deaths();
    for (const auto& [worker, until] : suspects) {
      const bool has_left = lifelines_->has_left(worker);
      if (!has_left && Clock::now() < until) continue;
      suspects_.clear(worker);
      if (!has_left) give_up(worker);
      if (has_left && links_.drop_output_for(worker)) refuse_to_send(worker, "a frame is");
    }
  }

  void give_up(int worker) {
    lose({ErrorCode::kUnavailable, worker_text(worker) + " closed a connection", "its log says why"},
         {worker, How::kClosed}, [&](const TransportFailure& failure) { return failure.needs(worker); });
  }

  void stop_service() {
    is_stopping_ = true;
    wake_service_.raise();
    if (service_.joinable()) service_.join();
  }

  const int worker_;
  const int workers_;
  const std::shared_ptr<ClosingStreams> closing_;
  const std::shared_ptr<Lifelines> lifelines_;
  FileDescriptor events_{::epoll_create1(EPOLL_CLOEXEC)};
  EventFlag wake_service_;
  EventFlag wake_caller_;
  std::atomic<bool> caller_listens_{false};  // to what the service thread brings about
  ChannelLinks links_;
  HandedOver handed_over_;

  PostedReceives receives_;

  // The caller's own.
  OwnFrames own_;
  bool has_left_ = false;  // said goodbye or broke off

  SharedFailure failure_;
  Suspects suspects_;
  std::atomic<bool> is_stopping_{false};

  std::thread service_;
};

}  // namespace

std::unique_ptr<Transport> make_socket_session(int worker, std::vector<ChannelStreams> channels,
                                               std::shared_ptr<Lifelines> lifelines,
                                               std::shared_ptr<ClosingStreams> closing) {
  return std::make_unique<SocketSession>(worker, std::move(channels), std::move(lifelines), std::move(closing));
}

}  // namespace everstep::trainer
