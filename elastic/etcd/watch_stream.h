#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include "elastic/etcd/channels.h"
#include "elastic/etcd/etcd.grpc.pb.h"

namespace everstep::elastic {

// One connection of a watch, from now on until it breaks. One thread reads; cancel() may come from any.
class WatchStream {
 public:
  WatchStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& prefix);
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;
  ~WatchStream();

  // Waits for the next message. Nothing: the stream broke, was cancelled, or the server has been silent although it was
  // asked for a sign of life. There is no next one then.
  std::optional<etcdserverpb::WatchResponse> next();

  void cancel() { context_.TryCancel(); }

 private:
  using Clock = EtcdClock;

  // What an operation that is under way is known by.
  enum class Step : std::intptr_t { kStart = 1, kRead, kWrite, kFinish };

  static void* tag(Step step) { return reinterpret_cast<void*>(step); }  // NOLINT(performance-no-int-to-ptr)
  void read();
  void write(const etcdserverpb::WatchRequest& request);
  void ask_to_watch();
  void ask_for_a_sign();

  std::string prefix_;
  std::unique_ptr<etcdserverpb::Watch::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>> stream_;
  etcdserverpb::WatchResponse incoming_;
  Clock::time_point last_heard_;
  int under_way_ = 1;  // operations that the queue still owes an answer
  bool is_started_ = false;
  bool is_writing_ = false;
};

}  // namespace everstep::elastic
