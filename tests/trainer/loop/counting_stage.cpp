#include "tests/trainer/loop/counting_stage.h"

#include <utility>

namespace everstep::trainer {
namespace {

class CountingStage final : public StageCompute {
 public:
  CountingStage(const StageRequest& request, int stage, int worker, Sightings& sightings, Tick& clock)
      : request_(request), stage_(stage), worker_(worker), sightings_(sightings), clock_(clock) {}

  void select_weights(WeightSet set) override { set_ = set; }

  Result<Output> forward(Position position, Buffer) override {
    see(position, true);
    const bool last = request_.layout.end_block == request_.model.blocks();
    return Output{last ? Buffer{} : boundary(), last ? static_cast<double>(position.value) : 0.0};
  }

  Result<Buffer> backward_input(Position position, Buffer, int) override {
    see(position, false);
    return request_.layout.first_block == 0 ? Buffer{} : boundary();
  }

  Status backward_weights(Position, int parity) override {
    clock_ += stage_ + 1;
    for (float& sum : request_.memory.gradients[parity].as<float>()) sum += 1;
    return {};
  }

  Result<Output> evaluate(std::int64_t index, Buffer) override {
    const bool last = request_.layout.end_block == request_.model.blocks();
    return Output{last ? Buffer{} : boundary(), last ? static_cast<double>(index) : 0.0};
  }

  Noted<bool> take_overflow(int) override { return false; }

 private:
  Buffer boundary() const { return allocate_zeroed(request_.model.boundary_bytes()); }
  void see(Position position, bool forward) {
    clock_ += stage_ + 1;
    const ChunkMemory& memory = request_.memory;
    const Buffer& weights = set_ == WeightSet::kWeights ? memory.weights : memory.provisional;
    sightings_.add(worker_, {stage_, position.value, forward, weights.as<float>()[0]});
  }

  StageRequest request_;
  int stage_;
  int worker_;
  Sightings& sightings_;
  Tick& clock_;
  WeightSet set_ = WeightSet::kWeights;
};

class NoData final : public DataSource {
 public:
  Result<Minibatch> training(Position) const override { return Minibatch{}; }
  Result<Minibatch> validation(std::int64_t) const override { return Minibatch{}; }
  std::int64_t validation_minibatches() const override { return 1000; }
};

}  // namespace

std::unique_ptr<StageCompute> make_counting_stage(const StageRequest& request, int stage, int worker,
                                                  Sightings& sightings, Tick& clock) {
  return std::make_unique<CountingStage>(request, stage, worker, sightings, clock);
}

std::unique_ptr<DataSource> make_no_data() { return std::make_unique<NoData>(); }

TrainOptions counting_options(scheduler::ScheduleKind kind, int depth, int width, int window, int steps) {
  TrainOptions options;
  options.schedule.kind = kind;
  options.schedule.depth = depth;
  options.schedule.width = width;
  options.schedule.window = window;
  options.steps = steps;
  const int stages = scheduler::Placement::make(kind, depth).value().stages();
  options.model.shape = {"counting", scheduler::ModelFamily::kGpt, stages, 2, 1, 2, 2};
  options.model.minibatch = 1;
  for (int stage = 0; stage < stages; ++stage) options.cuts.push_back(stage);
  options.cuts.push_back(options.model.blocks());
  options.adam.clip_norm = 0;
  options.learning_rate = {.peak = 0.5, .floor = 0.5, .decay = Decay::kConstant};
  options.peer_timeout = std::chrono::seconds(20);
  return options;
}

}  // namespace everstep::trainer
