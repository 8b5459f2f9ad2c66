#include "trainer/loop/input_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace everstep::trainer {
namespace {

using scheduler::Op;
using scheduler::OpKind;
using scheduler::Schedule;

// Enough for jitter; each costs a boundary tensor of memory.
constexpr std::size_t kReceivesAhead = 4;

// The frame that carries what `op` makes.
FrameHeader header_of(const Op& op, const FrameHeader& job) {
  FrameHeader header = job;
  header.kind = op.kind == OpKind::kForward ? FrameKind::kActivation : FrameKind::kInputGradient;
  header.window = op.window;
  header.round = op.round;
  header.minibatch = op.minibatch;
  header.stage = op.stage;
  return header;
}

}  // namespace

InputSource input_of(const Schedule& schedule, int worker, const Op& op, const FrameHeader& job) {
  if (!is_compute(op)) return {};
  Op producer = op;
  producer.stage += op.kind == OpKind::kForward ? -1 : 1;
  if (producer.stage < 0 || producer.stage == schedule.placement.stages()) return {};
  return {schedule.worker_of(schedule.group_of(worker), schedule.pipeline_of(op), producer.stage),
          header_of(producer, job)};
}

OutputTarget output_of(const Schedule& schedule, int worker, const Op& op, const FrameHeader& job) {
  const int next_stage = op.stage + (op.kind == OpKind::kForward ? 1 : -1);
  if (next_stage < 0 || next_stage == schedule.placement.stages()) return {};
  return {schedule.worker_of(schedule.group_of(worker), schedule.pipeline_of(op), next_stage), header_of(op, job)};
}

InputQueue::InputQueue(Transport& transport, const OpStream& stream, const FrameHeader& job, std::size_t bytes,
                       DeviceMemory& memory)
    : transport_(transport), stream_(stream), job_(job), bytes_(bytes), memory_(memory) {}

void InputQueue::post_ahead(std::int64_t index, const SuperRounds::Place& last_certain, Version version) {
  if (index > scanned_) scanned_ = index;
  for (; posted_.size() < kReceivesAhead && scanned_ < stream_.size(); ++scanned_) {
    const Op op = stream_.at(scanned_);
    if (stream_.leaves_out(op)) continue;
    const SuperRounds::Place place{op.window, op.round};
    if (place > last_certain) return;
    if (is_compute(op)) furthest_ = std::max(furthest_.value_or(place), place);
    InputSource source = input_of(stream_.pattern(), transport_.worker(), op, job_);
    if (source.from < 0) continue;
    source.header.length = bytes_;
    source.header.version = version;
    Buffer buffer = memory_.allocate_scratch(bytes_);
    const ReceiveId receive = transport_.post_receive(source.from, Channel::kTensors, source.header, buffer);
    posted_.push_back({scanned_, receive, std::move(buffer)});
  }
}

Result<Buffer> InputQueue::take(std::int64_t index, std::chrono::milliseconds timeout) {
  if (posted_.empty() || posted_.front().index != index) {
    const InputSource source = input_of(stream_.pattern(), transport_.worker(), stream_.at(index), job_);
    EVERSTEP_CHECK(source.from < 0, "an input that was never asked for: " + to_string(stream_.at(index)));
    return Buffer{};
  }
  EVERSTEP_TRY(transport_.wait(posted_.front().receive, timeout));
  Buffer input = std::move(posted_.front().buffer);
  posted_.pop_front();
  return input;
}

}  // namespace everstep::trainer
