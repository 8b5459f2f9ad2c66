#include "elastic/etcd/watch_stream.h"

#include <utility>

#include "elastic/etcd/channels.h"
#include "elastic/etcd_call.h"

namespace everstep::elastic {
namespace {

constexpr auto kAskAfter = std::chrono::milliseconds(500);
constexpr auto kGiveUpAfter = std::chrono::milliseconds(1500);

}  // namespace

WatchStream::WatchStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& prefix)
    : prefix_(prefix), stub_(etcdserverpb::Watch::NewStub(channel)), last_heard_(Clock::now()) {
  require_leader(context_);
  stream_ = stub_->PrepareAsyncWatch(&context_, &queue_);
  stream_->StartCall(tag(Step::kStart));
}

WatchStream::~WatchStream() {
  context_.TryCancel();
  void* done = nullptr;
  bool is_ok = false;
  while (under_way_ > 0 && queue_.Next(&done, &is_ok)) --under_way_;
  grpc::Status status;
  stream_->Finish(&status, tag(Step::kFinish));
  queue_.Shutdown();
  while (queue_.Next(&done, &is_ok)) continue;
}

std::optional<etcdserverpb::WatchResponse> WatchStream::next() {
  while (true) {
    void* done = nullptr;
    bool is_ok = false;
    if (queue_.AsyncNext(&done, &is_ok, grpc_deadline(Clock::now() + kAskAfter)) != grpc::CompletionQueue::GOT_EVENT) {
      if (Clock::now() - last_heard_ > kGiveUpAfter) return std::nullopt;
      ask_for_a_sign();
      continue;
    }
    --under_way_;
    if (!is_ok) return std::nullopt;
    if (done == tag(Step::kStart)) {
      ask_to_watch();
      read();
    } else if (done == tag(Step::kWrite)) {
      is_writing_ = false;
    } else {
      last_heard_ = Clock::now();
      etcdserverpb::WatchResponse message;
      message.Swap(&incoming_);
      read();
      return message;
    }
  }
}

void WatchStream::read() {
  is_started_ = true;
  ++under_way_;
  stream_->Read(&incoming_, tag(Step::kRead));
}

void WatchStream::write(const etcdserverpb::WatchRequest& request) {
  is_writing_ = true;
  ++under_way_;
  stream_->Write(request, tag(Step::kWrite));
}

void WatchStream::ask_to_watch() {
  etcdserverpb::WatchRequest request;
  KeyRange range = range_of_prefix(prefix_);
  request.mutable_create_request()->set_key(std::move(range.first));
  request.mutable_create_request()->set_range_end(std::move(range.end));
  write(request);
}

// etcd answers with an empty message.
void WatchStream::ask_for_a_sign() {
  if (!is_started_ || is_writing_) return;
  etcdserverpb::WatchRequest request;
  request.mutable_progress_request();
  write(request);
}

}  // namespace everstep::elastic
