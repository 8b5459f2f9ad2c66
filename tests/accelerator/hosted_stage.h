#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "trainer/model/stage_compute.h"

namespace everstep::accelerator {

// A stage that knows the host alone, for chunks on a device: each op has what it needs fetched, and what it made
// brought back. The device is waited for, but by the stage, not by the loop.
class HostedStage final : public trainer::StageCompute {
 public:
  using Make = std::function<std::unique_ptr<trainer::StageCompute>(const trainer::StageRequest&)>;

  HostedStage(const trainer::StageRequest& request, const Make& make)
      : memory_(*request.device), chunk_(request.memory), host_(on_host(request.memory)) {
    trainer::StageRequest hosted = request;
    hosted.memory = host_;
    hosted.device = nullptr;
    stage_ = make(hosted);
  }

  void select_weights(trainer::WeightSet set) override {
    set_ = set;
    stage_->select_weights(set);
  }

  Result<Output> forward(Position position, trainer::Buffer input) override {
    fetch_weights();
    return brought(stage_->forward(position, fetched(input)));
  }

  Result<trainer::Buffer> backward_input(Position position, trainer::Buffer output_gradient, int parity) override {
    fetch_weights();
    fetch(host_.gradients[parity], chunk_.gradients[parity]);
    auto gradient = stage_->backward_input(position, fetched(output_gradient), parity);
    bring(chunk_.gradients[parity], host_.gradients[parity]);
    if (gradient) *gradient = brought(*gradient);
    return gradient;
  }

  Status backward_weights(Position position, int parity) override {
    fetch(host_.gradients[parity], chunk_.gradients[parity]);
    Status added = stage_->backward_weights(position, parity);
    bring(chunk_.gradients[parity], host_.gradients[parity]);
    return added;
  }

  Result<Output> evaluate(std::int64_t index, trainer::Buffer input) override {
    fetch_weights();
    return brought(stage_->evaluate(index, fetched(input)));
  }

  trainer::Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  static trainer::ChunkMemory on_host(const trainer::ChunkMemory& chunk) {
    trainer::ChunkMemory host;
    host.weights = trainer::allocate_zeroed(chunk.weights.size);
    if (!chunk.provisional.empty()) host.provisional = trainer::allocate_zeroed(chunk.provisional.size);
    host.gradients[0] = trainer::allocate_zeroed(chunk.gradients[0].size);
    const bool is_same = chunk.gradients[0].data == chunk.gradients[1].data;
    host.gradients[1] = is_same ? host.gradients[0] : trainer::allocate_zeroed(chunk.gradients[1].size);
    return host;
  }

  void fetch_weights() {
    const bool provisional = set_ == trainer::WeightSet::kProvisional;
    fetch(provisional ? host_.provisional : host_.weights, provisional ? chunk_.provisional : chunk_.weights);
  }

  // In ordinary memory, as a stage of the host gets it.
  trainer::Buffer fetched(const trainer::Buffer& from) {
    if (from.empty()) return {};
    const trainer::Buffer on_host = trainer::allocate_scratch(from.size);
    fetch(on_host, from);
    return on_host;
  }

  void fetch(const trainer::Buffer& to, const trainer::Buffer& from) {
    const trainer::Buffer pinned = memory_.fetch(from);
    std::memcpy(to.data, pinned.data, pinned.size);
  }

  void bring(const trainer::Buffer& to, const trainer::Buffer& from) {
    const trainer::Buffer pinned = memory_.allocate_pinned(from.size);
    std::memcpy(pinned.data, from.data, from.size);
    memory_.copy(to, pinned);
    wait_for(memory_.mark());
  }

  trainer::Buffer brought(const trainer::Buffer& from) {
    if (from.empty()) return {};
    const trainer::Buffer there = memory_.allocate_scratch(from.size);
    bring(there, from);
    return there;
  }

  Result<Output> brought(Result<Output> output) {
    if (output) output->tensor = brought(output->tensor);
    return output;
  }

  trainer::DeviceMemory& memory_;
  trainer::ChunkMemory chunk_;
  trainer::ChunkMemory host_;
  std::unique_ptr<trainer::StageCompute> stage_;
  trainer::WeightSet set_ = trainer::WeightSet::kWeights;
};

}  // namespace everstep::accelerator
