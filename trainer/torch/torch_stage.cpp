#include "trainer/torch/torch_stage.h"

#include <map>

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

  Result<Output> forward(Position position, Buffer input) override;
  Result<Buffer> backward(Position position, Buffer output_gradient, int parity) override;
  Result<Output> evaluate(std::int64_t index, Buffer input) override;
  Noted<bool> take_overflow(int parity) override { return gradients_[parity]->take_overflow(); }

 private:
  struct BlockSlot {
    int number = 0;
    std::size_t first_entry = 0;  // in the layout
    std::unique_ptr<Block> code;
    Tensors weights;  // views of the chunk's memory
  };

  // Between a forward and its backward. Per block what it saved, or with recomputation its input alone.
  struct InFlight {
    BatchTensors batch;
    std::vector<Tensors> saved;
  };

  bool last() const { return request_.layout.end_block == request_.model.blocks(); }
  c10::Device device() const { return blocks_.front().weights.front().device(); }
  at::Tensor boundary_tensor(const Buffer& buffer) const;
  Output to_output(const at::Tensor& result) const;
  Result<Output> run_forward(Position position, const Buffer& input);
  Result<Buffer> run_backward(Position position, const Buffer& output_gradient, int parity);

  StageRequest request_;
  std::vector<BlockSlot> blocks_;
  std::array<std::unique_ptr<StageGradients>, 2> gradients_;
  std::map<std::int64_t, InFlight> in_flight_;  // by position
};

TorchStage::TorchStage(const StageRequest& request) : request_(request) {
  const StageLayout& layout = request.layout;
  const Tensors views = parameter_views(layout, request.memory.weights, scalar_type(request.model));
  auto codes = make_blocks(request.model, layout.first_block, layout.end_block);
  for (std::size_t entry = 0; entry < views.size(); ++entry) {
    const int block = layout.entries[entry].block;
    if (blocks_.empty() || blocks_.back().number != block) {
      blocks_.push_back({block, entry, std::move(codes[static_cast<std::size_t>(block - layout.first_block)]), {}});
    }
    blocks_.back().weights.push_back(views[entry]);
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
    activation = block.code->forward(block.weights, block_input,
                                     {request_.model, block.number, kept.batch, position, true}, saved);
    kept.saved.push_back(request_.model.recompute ? Tensors{block_input} : std::move(saved));
  }
  return to_output(activation);
}

Result<Buffer> TorchStage::run_backward(Position position, const Buffer& output_gradient, int parity) {
  const auto place = in_flight_.find(position.value);
  EVERSTEP_CHECK(place != in_flight_.end(), "a backward follows its forward");
  InFlight& kept = place->second;

  at::Tensor gradient = boundary_tensor(output_gradient);
  const double loss_weight = 1.0 / static_cast<double>(request_.window);
  StageGradients& sink = *gradients_[parity];
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    const BlockSlot& block = blocks_[i];
    const BlockCall call{request_.model, block.number, kept.batch, position, true, loss_weight};
    Tensors saved = std::move(kept.saved[i]);
    if (request_.model.recompute) block.code->forward(block.weights, at::Tensor(saved[0]), call, saved);
    sink.select_block(block.first_entry);
    gradient = block.code->backward(block.weights, saved, gradient, call, sink);
  }
  in_flight_.erase(place);
  return gradient.defined() ? to_buffer(gradient) : Buffer{};
}

Result<StageCompute::Output> TorchStage::forward(Position position, Buffer input) {
  return without_exceptions("the forward", position, [&] { return run_forward(position, input); });
}

Result<Buffer> TorchStage::backward(Position position, Buffer output_gradient, int parity) {
  return without_exceptions("the backward", position, [&] { return run_backward(position, output_gradient, parity); });
}

Result<StageCompute::Output> TorchStage::evaluate(std::int64_t index, Buffer input) {
  return without_exceptions("the evaluation", Position{index}, [&]() -> Result<Output> {
    const auto minibatch = request_.data->validation(index);
    if (!minibatch) return minibatch.error();
    const BatchTensors batch = to_tensors(*minibatch, request_.model, device(), false);
    at::Tensor activation = boundary_tensor(input);
    for (const BlockSlot& block : blocks_) {
      Tensors unused;
      activation = block.code->forward(block.weights, activation,
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
