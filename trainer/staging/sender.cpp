#include "trainer/staging/sender.h"

#include <algorithm>

namespace everstep::trainer {

Sender::Sender(Transport& transport) : transport_(transport), thread_([this] { run(); }) {}

Sender::~Sender() {
  stop();
  thread_.join();
}

void Sender::add(Frame frame) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    ++waiting_[{frame.to, frame.channel}];
    frames_.push_back(std::move(frame));
  }
  changed_.notify_all();
}

bool Sender::has_frames_for(int to, Channel channel) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find({to, channel});
  return found != waiting_.end() && found->second > 0;
}

bool Sender::wait_until_empty(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return frames_.empty(); });
}

void Sender::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void Sender::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !frames_.empty(); });
    if (stopped_) return;
    const Frame& frame = frames_.front();  // stays where it is while others are added
    lock.unlock();
    wait_for(frame.is_here);
    lock.lock();
    if (stopped_) return;
    lock.unlock();
    transport_.send(frame.to, frame.channel, frame.header, frame.payload);
    lock.lock();
    --waiting_[{frame.to, frame.channel}];
    frames_.pop_front();
    changed_.notify_all();
  }
}

Status hand_out_all(Transport& transport, std::initializer_list<Sender*> senders,
                    std::chrono::steady_clock::time_point deadline) {
  EVERSTEP_TRY(transport.status());
  if (std::ranges::all_of(senders, [&](Sender* sender) { return sender->wait_until_empty(deadline); })) return {};
  const Error late{ErrorCode::kDeadlineExceeded, "not all frames have left this worker in time", ""};
  transport.abort(late);
  return late;
}

std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  return std::max(std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()), milliseconds(0));
}

}  // namespace everstep::trainer
