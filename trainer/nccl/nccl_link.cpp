#include "trainer/nccl/nccl_link.h"

#include <utility>

#include "base/check.h"

namespace everstep::trainer {

NcclLink::~NcclLink() {
  if (communicator_ != nullptr) device_.end({take()}, NcclDevice::How::kAtOnce);
}

Status NcclLink::open(const NcclUniqueId& id) {
  const NcclOutcome outcome = device_.api().comm_init_rank(&communicator_, id, end_ == End::kSending ? 0 : 1);
  busy_ = outcome.in_progress();
  return check_nccl(outcome, "making a communicator");
}

Result<bool> NcclLink::is_made() {
  const NcclOutcome health = device_.api().comm_get_async_error(communicator_);
  EVERSTEP_TRY(check_nccl(health, "making a communicator"));
  busy_ = health.in_progress();
  return !busy_;
}

Status NcclLink::launch_first(const NcclLane& lane) {
  flight_ = NcclFlight{{}, lane, NcclLaneUse::kFirst};
  return put_on_stream(lane.scratch, kNcclScratchBytes);
}

Status NcclLink::launch(Buffer payload, const NcclLane& lane, CudaEvent after) {
  EVERSTEP_CHECK(!flight_ && !busy_, "a link carries one transfer at a time");
  const auto use = end_ == End::kSending ? NcclLaneUse::kSend : NcclLaneUse::kReceive;
  flight_ = NcclFlight{std::move(payload), lane, use};
  EVERSTEP_TRY(check_nccl(device_.api().stream_wait_event(lane.stream, after), "waiting for an event"));
  return put_on_stream(flight_->payload.data, flight_->payload.size);
}

Status NcclLink::put_on_stream(void* data, std::size_t bytes) {
  constexpr int kReceiver = 1;
  constexpr int kSender = 0;
  const NcclApi& api = device_.api();
  CudaStream stream = flight_->lane.stream;
  const NcclOutcome outcome = end_ == End::kSending ? api.send(data, bytes, kReceiver, communicator_, stream)
                                                    : api.recv(data, bytes, kSender, communicator_, stream);
  EVERSTEP_TRY(check_nccl(outcome, end_ == End::kSending ? "a send" : "a receive"));
  return settle(outcome);
}

// An event that is recorded before NCCL has put the transfer on the stream would come too early.
Status NcclLink::settle(const NcclOutcome& outcome) {
  busy_ = outcome.in_progress();
  if (busy_ || !flight_ || flight_->over != nullptr) return {};
  const auto event = device_.event_on(flight_->lane.stream);
  if (!event) return event.error();
  flight_->over = *event;
  return {};
}

Result<std::optional<NcclFlight>> NcclLink::advance() {
  const NcclOutcome health = device_.api().comm_get_async_error(communicator_);
  EVERSTEP_TRY(check_nccl(health, "a transfer"));
  EVERSTEP_TRY(settle(health));
  if (busy_ || !flight_) return std::optional<NcclFlight>();
  const NcclOutcome over = device_.api().event_query(flight_->over);
  EVERSTEP_TRY(check_nccl(over, "a transfer on the GPU"));
  if (!over.done()) return std::optional<NcclFlight>();
  return std::exchange(flight_, std::nullopt);
}

NcclRemains NcclLink::take() { return {std::exchange(communicator_, nullptr), std::exchange(flight_, std::nullopt)}; }

}  // namespace everstep::trainer
