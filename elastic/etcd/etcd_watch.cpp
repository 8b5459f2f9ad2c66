#include "elastic/etcd/etcd_watch.h"

#include <mutex>
#include <thread>
#include <utility>

#include "elastic/etcd/messages.h"
#include "elastic/etcd/watch_stream.h"

namespace everstep::elastic {
namespace {

// The destructor may have to wait for both.
constexpr auto kConnectWithin = std::chrono::milliseconds(500);
constexpr auto kPauseBeforeReconnect = std::chrono::milliseconds(100);

class EtcdWatch final : public Watch {
 public:
  EtcdWatch(std::shared_ptr<Channels> channels, std::shared_ptr<HistoryCheck> history, std::string prefix,
            WatchSink sink)
      : channels_(std::move(channels)),
        history_(std::move(history)),
        prefix_(std::move(prefix)),
        sink_(std::move(sink)),
        thread_([this] { serve(); }) {}

  ~EtcdWatch() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (stream_ != nullptr) stream_->cancel();
    }
    thread_.join();
  }

 private:
  void serve() {
    while (!is_stopping()) {
      const std::size_t server = channels_->preferred();
      if (channels_->is_tried_before(server, EtcdClock::now() + kConnectWithin)) {
        WatchStream stream(channels_->channel(server), prefix_);
        if (!announce(&stream)) return;
        listen(stream, channels_->url(server));
        announce(nullptr);
      }
      channels_->leave(server);
      if (!is_stopping()) channels_->pause_until(channels_->preferred(), EtcdClock::now() + kPauseBeforeReconnect);
    }
  }

  void listen(WatchStream& stream, const std::string& url) {
    while (const auto message = stream.next()) {
      // Someone else's events are worth nothing; the list that follows a gap finds out whose they are.
      if (!history_->check_cluster(message->header(), url)) {
        sink_.on_gap();
        return;
      }
      if (message->canceled()) return;
      if (message->created()) sink_.on_gap();
      if (message->events_size() > 0) sink_.on_events(from_message(*message));
    }
  }

  // The stream that the destructor has to cancel. False: it was called already.
  bool announce(WatchStream* stream) {
    const std::lock_guard lock(mutex_);
    stream_ = stream;
    return !stopping_;
  }

  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  std::shared_ptr<Channels> channels_;
  std::shared_ptr<HistoryCheck> history_;
  std::string prefix_;
  WatchSink sink_;
  std::mutex mutex_;
  bool stopping_ = false;
  WatchStream* stream_ = nullptr;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace

std::unique_ptr<Watch> start_etcd_watch(std::shared_ptr<Channels> channels, std::shared_ptr<HistoryCheck> history,
                                        std::string prefix, WatchSink sink) {
  return std::make_unique<EtcdWatch>(std::move(channels), std::move(history), std::move(prefix), std::move(sink));
}

}  // namespace everstep::elastic
