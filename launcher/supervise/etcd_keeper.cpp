#include "launcher/supervise/etcd_keeper.h"

#include <utility>

#include "base/text.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kFirstPause{500};
constexpr std::chrono::milliseconds kLongestPause{5'000};
constexpr std::chrono::milliseconds kAnswer{300};
// Less than it needs for anything.
constexpr std::uintmax_t kNoRoom = std::uintmax_t{1} << 20;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

EtcdKeeper::EtcdKeeper(EtcdServer& server, std::filesystem::path data,
                       std::function<void(const LogLine& event)> on_event)
    : server_(server), data_(std::move(data)), on_event_(std::move(on_event)), pause_(kFirstPause, kLongestPause) {}

void EtcdKeeper::look() {
  if (state_ == State::kDown) {
    if (Clock::now() >= restart_at_) restart();
  } else if (!server_.is_running()) {
    take_end();
  } else if (state_ == State::kStarting && server_.answers(kAnswer)) {
    state_ = State::kUp;
    told_.clear();
    on_event_(LogLine("etcd_restarted")
                  .add("pid", server_.pid())
                  .add("after_s", fixed_text(seconds(Clock::now() - died_), 1)));
  }
}

void EtcdKeeper::take_end() {
  LogLine event(state_ == State::kUp ? "etcd_died" : "etcd_not_restarted");
  if (const auto status = server_.wait_status()) describe_end(*status, event);
  std::error_code unknown;
  const std::filesystem::space_info room = std::filesystem::space(data_, unknown);
  // Its log is cut off then.
  if (!unknown && room.available < kNoRoom) event.add("reason", "no space left on the disk of " + data_.string());
  if (const std::string words = server_.last_words(); !words.empty()) event.add("last_words", words);
  go_down(std::move(event));
}

void EtcdKeeper::restart() {
  const Status started = server_.start_again();
  born_ = Clock::now();
  if (started) {
    state_ = State::kStarting;
  } else {
    go_down(LogLine("etcd_not_restarted").add("reason", started.error().line()));
  }
}

void EtcdKeeper::go_down(LogLine event) {
  const auto now = Clock::now();
  if (state_ == State::kUp) died_ = now;
  state_ = State::kDown;
  const auto pause = pause_.after_life_of(now - born_);
  restart_at_ = now + pause;
  if (std::exchange(told_, event.text()) == event.text()) return;
  on_event_(event.add("restart_in_s", seconds(pause)));
}

}  // namespace everstep::launcher
