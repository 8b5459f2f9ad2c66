#include "tests/accelerator/stream_threads.h"

#include <exception>
#include <utility>

#include "base/random.h"

namespace everstep::accelerator {

StreamThreads::~StreamThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& stream : streams_) stream->changed.notify_all();
  }
  for (const auto& stream : streams_) stream->thread.join();
}

DeviceId StreamThreads::add_device(int hardware_queues) {
  const std::lock_guard lock(mutex_);
  devices_.push_back({static_cast<std::size_t>(hardware_queues)});
  return static_cast<DeviceId>(devices_.size()) - 1;
}

StreamId StreamThreads::add_stream(DeviceId of) {
  const std::lock_guard lock(mutex_);
  const auto id = streams_.size();
  auto& stream = *streams_.emplace_back(std::make_unique<Stream>());
  Device& device = devices_.at(static_cast<std::size_t>(of));
  const std::size_t number = device.streams++;
  const std::size_t queue = device.most_queues > 0 ? number % device.most_queues : number;
  if (device.queues.size() <= queue) device.queues.resize(queue + 1);
  stream.queue = &device.queues[queue];
  stream.thread = std::thread([this, &stream] { serve(stream); });
  return static_cast<StreamId>(id);
}

std::uint64_t StreamThreads::run(StreamId stream, std::string what, std::function<void()> work) {
  return enqueue(stream, {std::move(what), std::move(work), std::nullopt, {}, 0});
}

std::uint64_t StreamThreads::wait_on_stream(StreamId stream, const Moment& moment) {
  return enqueue(stream, {"wait", [] {}, moment, {}, 0});
}

void StreamThreads::wait_here(const Moment& moment) {
  std::unique_lock lock(mutex_);
  ++hosts_waiting_;
  wake();
  host_changed_.wait(lock, [&] { return is_over_locked(moment); });
  --hosts_waiting_;
}

bool StreamThreads::is_over(const Moment& moment) const {
  const std::lock_guard lock(mutex_);
  return is_over_locked(moment);
}

std::optional<std::string> StreamThreads::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<std::uint64_t> StreamThreads::stuck_at(const std::function<bool(StreamId)>& waits) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t over = 0;
  for (std::size_t id = 0; id < streams_.size(); ++id) {
    const Stream& stream = *streams_[id];
    if (is_next(stream) || (stream.busy && !waits(static_cast<StreamId>(id)))) return std::nullopt;
    over += stream.over;
  }
  return over;
}

std::uint64_t StreamThreads::enqueue(StreamId stream, Task task) {
  const std::lock_guard lock(mutex_);
  Stream& target = *streams_.at(static_cast<std::size_t>(stream));
  task.entry = ++entries_;
  task.due = std::chrono::steady_clock::now() + options_.laziness;
  if (options_.jitter.count() > 0) {
    const auto most = static_cast<std::uint64_t>(options_.jitter.count());
    task.due += std::chrono::microseconds(RandomStream(options_.seed, 0).below(entries_, most));
  }
  target.queue->push_back(task.entry);
  target.tasks.push_back(std::move(task));
  target.changed.notify_all();
  return ++target.enqueued;
}

// Whether nothing but its time keeps the first of its work from beginning.
bool StreamThreads::is_next(const Stream& stream) const {
  if (stream.tasks.empty() || stream.busy) return false;
  const Task& task = stream.tasks.front();
  return stream.queue->front() == task.entry && (!task.after || is_over_locked(*task.after));
}

bool StreamThreads::may_begin(const Stream& stream, std::chrono::steady_clock::time_point now) const {
  return is_next(stream) && (hosts_waiting_ > 0 || ending_ || now >= stream.tasks.front().due);
}

bool StreamThreads::is_over_locked(const Moment& moment) const {
  return streams_.at(static_cast<std::size_t>(moment.stream))->over >= moment.number;
}

// Whoever may begin now, because of what has just changed.
void StreamThreads::wake() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& stream : streams_) {
    if (may_begin(*stream, now)) stream->changed.notify_all();
  }
  host_changed_.notify_all();
}

void StreamThreads::serve(Stream& stream) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (!may_begin(stream, now)) {
      if (stream.tasks.empty() && ending_) return;
      if (!stream.tasks.empty() && now < stream.tasks.front().due) {
        stream.changed.wait_until(lock, stream.tasks.front().due);
      } else {
        stream.changed.wait(lock);
      }
      continue;
    }
    Task task = std::move(stream.tasks.front());
    stream.tasks.pop_front();
    stream.busy = true;
    stream.queue->pop_front();
    wake();
    lock.unlock();
    std::optional<std::string> failed;
    try {
      task.work();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      failed = "'" + task.what + "': " + text.substr(0, text.find('\n'));
    }
    task = {};  // what it holds is given back without the lock
    lock.lock();
    if (failed && !failure_) failure_ = failed;
    stream.busy = false;
    ++stream.over;
    wake();
  }
}

}  // namespace everstep::accelerator
