#include <algorithm>
#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

namespace {

// The first stage runs ahead of the last by at most so many, since sends do not wait.
constexpr std::int64_t kEvaluatedAtOnce = 64;

}  // namespace

// One validation minibatch at one stage.
struct Worker::EvaluationOp {
  std::int64_t minibatch = 0;
  int group = 0;
  int pipeline = 0;
  int stage = 0;
};

// What one worker evaluates, in its order: by minibatch, then by stage. Since a stage waits only for the stage before
// it, an order by minibatch cannot deadlock, and links stay in order.
std::vector<Worker::EvaluationOp> Worker::evaluation_ops(const scheduler::Schedule& shape, std::int64_t begin,
                                                         std::int64_t end, int worker) {
  std::vector<EvaluationOp> ops;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto group = static_cast<int>(i % shape.request.width);
    const auto pipeline = static_cast<int>((i / shape.request.width) % shape.placement.pipelines());
    for (int stage = 0; stage < shape.placement.stages(); ++stage) {
      if (shape.worker_of(group, pipeline, stage) == worker) ops.push_back({i, group, pipeline, stage});
    }
  }
  return ops;
}

FrameHeader Worker::activation_header(FrameHeader header, const EvaluationOp& op, int stage) {
  header.kind = FrameKind::kActivation;
  header.round = static_cast<std::int32_t>(op.minibatch);
  header.minibatch = op.pipeline;
  header.stage = stage;
  return header;
}

Result<Noted<double>> Worker::evaluate_one(const FrameHeader& header, const EvaluationOp& op) {
  Buffer input;
  if (op.stage > 0) {
    input = memory_.allocate_scratch(options_.model.boundary_bytes());
    FrameHeader expected = activation_header(header, op, op.stage - 1);
    expected.length = input.size;
    const int from = shape_.worker_of(op.group, op.pipeline, op.stage - 1);
    const ReceiveId receive = transport_.post_receive(from, Channel::kTensors, expected, input);
    EVERSTEP_TRY(transport_.wait(receive, options_.peer_timeout));
  }
  StageCompute& compute = *chunk_of(op.stage).compute;
  compute.select_weights(WeightSet::kWeights);
  auto output = compute.evaluate(op.minibatch, std::move(input));
  if (!output) return output.error();
  if (op.stage + 1 < shape_.placement.stages()) {
    FrameHeader sent = activation_header(header, op, op.stage);
    sent.length = output->tensor.size;
    const int to = shape_.worker_of(op.group, op.pipeline, op.stage + 1);
    transport_.send(to, Channel::kTensors, sent, std::move(output->tensor));
  }
  return output->loss;
}

Result<double> Worker::evaluate(std::int64_t minibatches) {
  std::vector<UpdateRecord> all;
  for (std::int64_t begin = 0; begin < minibatches; begin += kEvaluatedAtOnce) {
    auto records = evaluate_range(begin, std::min(minibatches, begin + kEvaluatedAtOnce));
    if (!records) return records.error();
    all.insert(all.end(), records->begin(), records->end());
  }
  last_exchange_ = hooks_.now();  // evaluating is not idling
  return mean_of(losses_in_order(all));
}

Result<std::vector<UpdateRecord>> Worker::evaluate_range(std::int64_t begin, std::int64_t end) {
  const int last_stage = shape_.placement.stages() - 1;
  FrameHeader header = job_of(options_);
  header.window = version_.value;
  header.version = version_;
  std::vector<NotedLoss> losses_here;
  for (const EvaluationOp& op : evaluation_ops(shape_, begin, end, transport_.worker())) {
    const auto loss = evaluate_one(header, op);
    if (!loss) return loss.error();
    if (op.stage == last_stage) losses_here.push_back({static_cast<int>(op.minibatch), *loss});
  }
  memory_.wait_gathered();
  UpdateRecord record;
  for (const NotedLoss& each : losses_here) record.losses.push_back({each.minibatch, each.loss.value()});
  std::vector<RecordCapacity> capacities;
  for (int worker = 0; worker < plan_workers(); ++worker) {
    const std::vector<EvaluationOp> ops = evaluation_ops(shape_, begin, end, worker);
    const auto losses = std::count_if(ops.begin(), ops.end(), [&](const auto& op) { return op.stage == last_stage; });
    capacities.push_back({0, static_cast<std::size_t>(losses), 0});
  }
  return exchange_records(transport_, header, capacities, record, options_.peer_timeout);
}

}  // namespace everstep::trainer
