#include "trainer/nccl/nccl_link.h"

#include <utility>

namespace everstep::trainer {

NcclLink::NcclLink(const NcclApi& api, End end, CudaStream compute) : api_(api), end_(end), compute_(compute) {}

Status NcclLink::check(const NcclOutcome& outcome, const char* what) const {
  if (!outcome.failed()) return {};
  return Error{ErrorCode::kUnavailable, std::string("NCCL: ") + what + " failed: " + outcome.error,
               "a peer's death or a broken network looks like this"};
}

Status NcclLink::open(const NcclUniqueId& id) {
  Result<CudaStream> stream = api_.stream_create();
  if (!stream) return stream.error();
  stream_ = *stream;
  const NcclOutcome outcome = api_.comm_init_rank(&communicator_, id, end_ == End::kSending ? 0 : 1);
  busy_ = outcome.state == NcclOutcome::State::kInProgress;
  return check(outcome, "making a communicator");
}

std::uint64_t NcclLink::enqueue(Buffer payload) {
  transfers_.push_back({std::move(payload)});
  return finished_ + transfers_.size() - 1;
}

Status NcclLink::advance() {
  if (!is_open()) return {};
  const NcclOutcome health = api_.comm_get_async_error(communicator_);
  EVERSTEP_TRY(check(health, "a transfer"));
  busy_ = !health.done();
  if (busy_) return {};
  if (launched_ > 0 && transfers_[launched_ - 1].event == nullptr) EVERSTEP_TRY(record(transfers_[launched_ - 1]));
  while (!busy_ && launched_ < transfers_.size()) EVERSTEP_TRY(launch(transfers_[launched_++]));
  while (launched_ > 0 && transfers_.front().event != nullptr) {
    const NcclOutcome outcome = api_.event_query(transfers_.front().event);
    EVERSTEP_TRY(check(outcome, "a transfer on the GPU"));
    if (!outcome.done()) break;
    api_.event_destroy(transfers_.front().event);
    transfers_.pop_front();
    --launched_;
    ++finished_;
  }
  return {};
}

Status NcclLink::launch(Transfer& transfer) {
  EVERSTEP_TRY(wait_for_compute());
  constexpr int kReceiver = 1;
  constexpr int kSender = 0;
  const Buffer& payload = transfer.payload;
  const NcclOutcome outcome = end_ == End::kSending
                                  ? api_.send(payload.data, payload.size, kReceiver, communicator_, stream_)
                                  : api_.recv(payload.data, payload.size, kSender, communicator_, stream_);
  EVERSTEP_TRY(check(outcome, end_ == End::kSending ? "a send" : "a receive"));
  busy_ = outcome.state == NcclOutcome::State::kInProgress;
  // An event recorded before NCCL has put the transfer on the stream would come too early.
  return busy_ ? Status() : record(transfer);
}

Status NcclLink::record(Transfer& transfer) {
  const Result<CudaEvent> event = api_.event_create();
  if (!event) return event.error();
  transfer.event = *event;
  return check(api_.event_record(transfer.event, stream_), "recording an event");
}

// The payload may still be written (of a send) or read (of a buffer used before) by kernels that are queued.
Status NcclLink::wait_for_compute() {
  const Result<CudaEvent> event = api_.event_create();
  if (!event) return event.error();
  Status status = check(api_.event_record(*event, compute_), "recording an event");
  if (status) status = check(api_.stream_wait_event(stream_, *event), "waiting for an event");
  api_.event_destroy(*event);  // CUDA keeps it as long as a stream waits for it
  return status;
}

Result<bool> NcclLink::close() {
  if (!is_open()) return true;
  if (!std::exchange(finalizing_, true)) {
    EVERSTEP_TRY(check(api_.comm_finalize(communicator_), "finalizing a communicator"));
  }
  const NcclOutcome outcome = api_.comm_get_async_error(communicator_);
  EVERSTEP_TRY(check(outcome, "finalizing a communicator"));
  if (!outcome.done()) return false;
  EVERSTEP_TRY(check(api_.comm_destroy(std::exchange(communicator_, nullptr)), "destroying a communicator"));
  api_.stream_destroy(std::exchange(stream_, nullptr));
  return true;
}

NcclCommunicator NcclLink::take_communicator() { return std::exchange(communicator_, nullptr); }

}  // namespace everstep::trainer
