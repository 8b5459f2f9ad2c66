#include "trainer/emulated/emulated_stage.h"

#include "trainer/emulated/wait_exactly.h"

namespace everstep::trainer {
namespace {

class EmulatedStage final : public StageCompute {
 public:
  EmulatedStage(const StageRequest& request, EmulatedTimes times)
      : times_(times),
        is_first_(request.layout.first_block == 0),
        is_last_(request.layout.end_block == request.model.blocks()),
        zeros_(allocate_zeroed(request.model.boundary_bytes())) {}

  void select_weights(WeightSet) override {}

  Result<Output> forward(Position, Buffer) override { return compute(); }

  Result<Buffer> backward_input(Position, Buffer, int) override {
    wait_exactly(times_.backward);
    return is_first_ ? Buffer{} : zeros_;
  }

  Status backward_weights(Position, int) override {
    wait_exactly(times_.weights);
    return {};
  }

  Result<Output> evaluate(std::int64_t, Buffer) override { return compute(); }

  Noted<bool> take_overflow(int) override { return false; }

 private:
  Output compute() const {
    wait_exactly(times_.forward);
    return {is_last_ ? Buffer{} : zeros_, 0};
  }

  EmulatedTimes times_;
  bool is_first_;
  bool is_last_;
  Buffer zeros_;  // nobody writes to it, so one serves every message
};

class EmulatedData final : public DataSource {
 public:
  Result<Minibatch> training(Position) const override { return Minibatch{}; }
  Result<Minibatch> validation(std::int64_t) const override { return Minibatch{}; }
  std::int64_t validation_minibatches() const override { return 0; }
};

}  // namespace

std::unique_ptr<StageCompute> make_emulated_stage(const StageRequest& request, EmulatedTimes times) {
  return std::make_unique<EmulatedStage>(request, times);
}

std::unique_ptr<DataSource> make_emulated_data() { return std::make_unique<EmulatedData>(); }

}  // namespace everstep::trainer
