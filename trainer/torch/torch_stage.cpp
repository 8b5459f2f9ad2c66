#include "trainer/torch/torch_stage.h"

#include <map>
#include <utility>

#include <c10/util/Exception.h>

#include "trainer/torch/block.h"
#include "trainer/torch/device_buffers.h"
#include "trainer/torch/gradient_sinks.h"

namespace everstep::trainer {
namespace {

// LibTorch's exceptions end here.
template <typename Function>
auto without_exceptions(const char* what, Position position, const Function& function) -> decltype(function()) {
  const auto failed = [&](const std::string& how, const char* hint = "") {
    return Error{ErrorCode::kInternal, std::string(what) + " of minibatch " + std::to_string(position.value) + how,
                 hint};
  };
  constexpr const char* kNeedLess = "use more workers, a smaller minibatch or recomputation";
  try {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    return function();
  } catch (const c10::OutOfMemoryError& error) {  // of a device
    return failed(std::string(" ran out of memory: ") + error.what_without_backtrace(), kNeedLess);
  } catch (const c10::Error& error) {
    return failed(std::string(" failed in LibTorch: ") + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return failed(" ran out of memory", kNeedLess);
  }
}

class TorchStage final : public StageCompute {
 public:
  explicit TorchStage(const StageRequest& request);

  void select_weights(WeightSet set) override { selected_ = static_cast<std::size_t>(set); }
  Result<Output> forward(Position position, Buffer input) override;
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override;
  Status backward_weights(Position position, int parity) override;
  Result<Output> evaluate(std::int64_t index, Buffer input) override;
  Noted<bool> take_overflow(int parity) override { return gradients_[parity]->take_overflow(); }

 private:
  struct BlockSlot {
    int number = 0;
    std::size_t first_entry = 0;  // in the layout
    std::unique_ptr<Block> code;
    std::array<Tensors, 2> weights;  // by WeightSet: views of the chunk's memory
  };

  // Between a forward and its backward. Per block what it saved, or with recomputation its input alone.
  struct InFlight {
    BatchTensors batch;
    std::vector<Tensors> saved;
  };

  // Between the two halves of a backward.
  struct Owed {
    struct OfBlock {
      std::size_t first_entry = 0;
      OwedGradients gradients;
    };

    int parity = 0;
    std::vector<OfBlock> blocks;  // in the order of the backward; with recomputation none
    at::Tensor overflow;          // of what the first half added
  };

  bool last() const { return request_.layout.end_block == request_.model.blocks(); }
  c10::Device device() const { return blocks_.front().weights.front().front().device(); }
  at::Tensor boundary_tensor(const Buffer& buffer) const;
  Output to_output(const at::Tensor& result) const;
  Result<Output> run_forward(Position position, const Buffer& input);
  Result<Buffer> run_backward_input(Position position, const Buffer& output_gradient, int parity);
  Status run_backward_weights(Position position, int parity);

  StageRequest request_;
  std::vector<BlockSlot> blocks_;
  std::size_t selected_ = 0;  // of the two sets of weights
  std::array<std::unique_ptr<StageGradients>, 2> gradients_;
  std::map<std::int64_t, InFlight> in_flight_;  // by position
  std::map<std::int64_t, Owed> owed_;           // the same
};

TorchStage::TorchStage(const StageRequest& request) : request_(request) {
  const StageLayout& layout = request.layout;
  const Tensors views = parameter_views(layout, request.memory.weights, scalar_type(request.model));
  const Tensors provisional = request.memory.provisional.empty()
                                  ? Tensors{}
                                  : parameter_views(layout, request.memory.provisional, scalar_type(request.model));
  auto codes = make_blocks(request.model, layout.first_block, layout.end_block);
  for (std::size_t entry = 0; entry < views.size(); ++entry) {
    const int block = layout.entries[entry].block;
    if (blocks_.empty() || blocks_.back().number != block) {
      blocks_.push_back({block, entry, std::move(codes[static_cast<std::size_t>(block - layout.first_block)]), {}});
    }
    blocks_.back().weights[0].push_back(views[entry]);
    if (!provisional.empty()) blocks_.back().weights[1].push_back(provisional[entry]);
  }
  for (int parity = 0; parity < 2; ++parity) gradients_.at(parity) = make_stage_gradients(request, parity);
}

// An activation or its gradient as a tensor over the same bytes, which live as long as it.
at::Tensor TorchStage::boundary_tensor(const Buffer& buffer) const {
  if (buffer.empty()) return {};
  EVERSTEP_CHECK(buffer.size == request_.model.boundary_bytes(), "a tensor between stages has the boundary's size");
  return to_tensor(buffer, {request_.model.tokens_per_minibatch(), request_.model.shape.hidden},
                   scalar_type(request_.model));
}

StageCompute::Output TorchStage::to_output(const at::Tensor& result) const {
  if (!last()) return {to_buffer(result), 0};
  return {{}, result.is_cpu() ? Noted<double>(result.item<double>()) : request_.device->number(to_buffer(result))};
}

Result<StageCompute::Output> TorchStage::run_forward(Position position, const Buffer& input) {
  const auto minibatch = request_.data->training(position);
  if (!minibatch) return minibatch.error();
  const bool has_embedding = request_.layout.first_block == 0;
  const auto [place, inserted] =
      in_flight_.emplace(position.value, InFlight{to_tensors(*minibatch, request_.model, device(), has_embedding), {}});
  EVERSTEP_CHECK(inserted, "a minibatch goes forward once");
  InFlight& kept = place->second;

  at::Tensor activation = boundary_tensor(input);
  for (const BlockSlot& block : blocks_) {
    Tensors saved;
    const at::Tensor block_input = activation;
    activation = block.code->forward(block.weights[selected_], block_input,
                                     {request_.model, block.number, kept.batch, position, true}, saved);
    kept.saved.push_back(request_.model.recompute ? Tensors{block_input} : std::move(saved));
  }
  return to_output(activation);
}

Result<Buffer> TorchStage::run_backward_input(Position position, const Buffer& output_gradient, int parity) {
  const auto place = in_flight_.find(position.value);
  EVERSTEP_CHECK(place != in_flight_.end(), "a backward follows its forward");
  InFlight& kept = place->second;

  at::Tensor gradient = boundary_tensor(output_gradient);
  const double loss_weight = 1.0 / static_cast<double>(request_.window);
  StageGradients& sink = *gradients_[parity];
  Owed owed{parity, {}, {}};
  at::Tensor others_overflow = sink.exchange_overflow({});
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    const BlockSlot& block = blocks_[i];
    const BlockCall call{request_.model, block.number, kept.batch, position, true, loss_weight};
    Tensors saved = std::move(kept.saved[i]);
    if (request_.model.recompute) block.code->forward(block.weights[selected_], at::Tensor(saved[0]), call, saved);
    sink.select_block(block.first_entry);
    OwedGradients of_block;
    gradient = block.code->backward(block.weights[selected_], saved, gradient, call, sink, of_block);
    if (request_.model.recompute) {  // or all that was recomputed would be kept after all
      add_owed(of_block, sink);
    } else {
      owed.blocks.push_back({block.first_entry, std::move(of_block)});
    }
  }
  owed.overflow = sink.exchange_overflow(std::move(others_overflow));
  in_flight_.erase(place);
  owed_.emplace(position.value, std::move(owed));
  return gradient.defined() ? to_buffer(gradient) : Buffer{};
}

Status TorchStage::run_backward_weights(Position position, int parity) {
  auto place = owed_.extract(position.value);
  EVERSTEP_CHECK(!place.empty() && place.mapped().parity == parity, "the first half of this backward comes before");
  Owed& owed = place.mapped();
  StageGradients& sink = *gradients_[parity];
  for (Owed::OfBlock& block : owed.blocks) {
    sink.select_block(block.first_entry);
    add_owed(std::exchange(block.gradients, {}), sink);
  }
  sink.count_overflow(owed.overflow);
  return {};
}

Result<StageCompute::Output> TorchStage::forward(Position position, Buffer input) {
  return without_exceptions("the forward", position, [&] { return run_forward(position, input); });
}

Result<Buffer> TorchStage::backward_input(Position position, Buffer output_gradient, int parity) {
  return without_exceptions("the backward", position,
                            [&] { return run_backward_input(position, output_gradient, parity); });
}

Status TorchStage::backward_weights(Position position, int parity) {
  return without_exceptions("the weights' backward", position, [&] { return run_backward_weights(position, parity); });
}

Result<StageCompute::Output> TorchStage::evaluate(std::int64_t index, Buffer input) {
  return without_exceptions("the evaluation", Position{index}, [&]() -> Result<Output> {
    const auto minibatch = request_.data->validation(index);
    if (!minibatch) return minibatch.error();
    const BatchTensors batch = to_tensors(*minibatch, request_.model, device(), false);
    at::Tensor activation = boundary_tensor(input);
    for (const BlockSlot& block : blocks_) {
      Tensors unused;
      activation = block.code->forward(block.weights[selected_], activation,
                                       {request_.model, block.number, batch, Position{}, false}, unused);
    }
    return to_output(activation);
  });
}

}  // namespace

std::unique_ptr<StageCompute> make_torch_stage(const StageRequest& request) {
  return std::make_unique<TorchStage>(request);
}

}  // namespace everstep::trainer
