#include "launcher/worker/compute_watch.h"

#include <utility>

namespace everstep::launcher {
namespace {

class WatchedStage final : public trainer::StageCompute {
 public:
  WatchedStage(ComputeWatch& watch, std::unique_ptr<trainer::StageCompute> stage)
      : watch_(watch), stage_(std::move(stage)) {}

  Result<Output> forward(Position position, trainer::Buffer input) override {
    watch_.begin(position.value);
    auto output = stage_->forward(position, std::move(input));
    watch_.end();
    return output;
  }

  Result<trainer::Buffer> backward_input(Position position, trainer::Buffer output_gradient, int parity) override {
    watch_.begin();
    auto gradient = stage_->backward_input(position, std::move(output_gradient), parity);
    watch_.end();
    return gradient;
  }

  Status backward_weights(Position position, int parity) override {
    watch_.begin();
    Status added = stage_->backward_weights(position, parity);
    watch_.end();
    return added;
  }

  Result<Output> evaluate(std::int64_t index, trainer::Buffer input) override {
    watch_.begin();
    auto output = stage_->evaluate(index, std::move(input));
    watch_.end();
    return output;
  }

  trainer::Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  ComputeWatch& watch_;
  std::unique_ptr<trainer::StageCompute> stage_;
};

}  // namespace

std::unique_ptr<trainer::StageCompute> ComputeWatch::watch(std::unique_ptr<trainer::StageCompute> stage) {
  return std::make_unique<WatchedStage>(*this, std::move(stage));
}

bool ComputeWatch::makes_progress() const {
  const Tick begun = begun_;
  return begun == 0 || now_() - begun <= std::max(kShortestLimit, kPatience * longest_);
}

void ComputeWatch::begin(std::int64_t position) {
  reached_ = std::max(reached_.load(), position + 1);
  begin();
}

void ComputeWatch::end() {
  last_end_ = now_();
  longest_ = std::max(longest_.load(), last_end_ - begun_);
  begun_ = 0;
}

}  // namespace everstep::launcher
