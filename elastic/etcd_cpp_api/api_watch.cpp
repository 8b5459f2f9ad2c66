#include "elastic/etcd_cpp_api/api_watch.h"

#include <condition_variable>
#include <thread>
#include <utility>

#include <etcd/Watcher.hpp>

#include "elastic/etcd_cpp_api/api_transaction.h"

namespace everstep::elastic {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(500);
constexpr auto kPauseBeforeReconnect = std::chrono::milliseconds(100);

// What the library's threads know of us. It may live longer than the watch does: one of them calls when it likes.
class Listener {
 public:
  explicit Listener(WatchSink sink) : sink_(std::move(sink)) {}

  void tell_gap() {
    const std::lock_guard lock(mutex_);
    ++connection_;
    is_broken_ = false;
    if (!is_closed_) sink_.on_gap();
  }

  // Of the connection that has this number.
  void tell(int connection, const etcd::Response& response) {
    std::vector<WatchEvent> events;
    for (const etcd::Event& event : response.events()) {
      events.push_back({event.event_type() == etcd::Event::EventType::DELETE_, from_api(event.kv())});
    }
    const std::lock_guard lock(mutex_);
    if (is_closed_ || connection != connection_) return;
    if (!events.empty()) sink_.on_events(events);
    if (!response.is_ok()) tell_end();
  }

  void tell_end_of(int connection) {
    const std::lock_guard lock(mutex_);
    if (connection == connection_) tell_end();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    tell_end();
  }

  // False: the connection broke, or there is nobody to listen any more.
  bool stays_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [this] { return is_broken_ || is_closed_; });
  }

  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }

  int connection() {
    const std::lock_guard lock(mutex_);
    return connection_;
  }

 private:
  void tell_end() {
    is_broken_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  WatchSink sink_;
  int connection_ = 0;
  bool is_broken_ = false;
  bool is_closed_ = false;
};

class ApiWatch final : public Watch {
 public:
  ApiWatch(std::shared_ptr<ApiClients> clients, std::string prefix, WatchSink sink)
      : clients_(std::move(clients)),
        range_(range_of_prefix(prefix)),
        listener_(std::make_shared<Listener>(std::move(sink))),
        thread_([this] { serve(); }) {}

  ~ApiWatch() override {
    listener_->close();
    thread_.join();
  }

 private:
  void serve() {
    while (!listener_->is_closed()) {
      const std::size_t server = clients_->preferred();
      watch(server);
      clients_->leave(server);
      if (!listener_->is_closed()) clients_->pause(clients_->preferred(), kPauseBeforeReconnect);
    }
  }

  void watch(std::size_t server) {
    const auto end = ApiClock::now() + kAskEvery;
    etcd::SyncClient& client = clients_->client(server, end);
    if (!clients_->is_tried(client, end)) return;
    clients_->forget_cluster(server);
    // Someone else's events are worth nothing; the list that follows a gap finds out whose they are.
    const auto failure = clients_->cluster_failure(server, client);
    if (failure && failure->kind == CallFailure::Kind::kFinal) listener_->tell_gap();
    if (failure) return;
    const etcd::Response present = client.head();
    if (!present.is_ok()) return;
    listener_->tell_gap();
    auto watcher = std::make_unique<etcd::Watcher>(
        client, range_.first, range_.end, present.index() + 1,
        [listener = listener_, connection = listener_->connection()](const etcd::Response& response) {
          listener->tell(connection, response);
        },
        [listener = listener_, connection = listener_->connection()](bool) { listener->tell_end_of(connection); });
    while (listener_->stays_for(kAskEvery) && client.head().is_ok()) continue;
    // With a server that is frozen this takes more than a second.
    std::thread([watcher = std::move(watcher)]() mutable { watcher.reset(); }).detach();
  }

  std::shared_ptr<ApiClients> clients_;
  KeyRange range_;
  std::shared_ptr<Listener> listener_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace

std::unique_ptr<Watch> start_api_watch(std::shared_ptr<ApiClients> clients, std::string prefix, WatchSink sink) {
  return std::make_unique<ApiWatch>(std::move(clients), std::move(prefix), std::move(sink));
}

}  // namespace everstep::elastic
