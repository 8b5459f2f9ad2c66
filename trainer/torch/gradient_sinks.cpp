#include "trainer/torch/gradient_sinks.h"

#include <utility>

#include "trainer/torch/device_buffers.h"
#include "trainer/torch/ops.h"
#include "trainer/torch/product.h"
#include "trainer/update/fixed_point.h"

namespace everstep::trainer {
namespace {

class FloatGradients final : public StageGradients {
 public:
  FloatGradients(const StageLayout& layout, const Buffer& sums) : sums_(parameter_views(layout, sums, at::kFloat)) {}

  void add(int parameter, const at::Tensor& gradient) override { sums_[entry_of(parameter)].add_(gradient); }

  void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) override {
    at::Tensor& sum = sums_[entry_of(parameter)];
    if (left.scalar_type() == at::kFloat) {
      ops::add_product(sum, left, right);
    } else {
      sum.add_(product(left, right));
    }
  }

  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    sums_[entry_of(parameter)].index_add_(0, index, rows);
  }

  // The optimizer sees infinities and NaNs itself.
  Noted<bool> take_overflow() override { return false; }
  at::Tensor exchange_overflow(at::Tensor /*flag*/) override { return {}; }
  void count_overflow(const at::Tensor& /*flag*/) override {}

 private:
  Tensors sums_;
};

class FixedPointGradients final : public StageGradients {
 public:
  FixedPointGradients(const StageRequest& request, const Buffer& sums)
      : device_(request.device),
        sums_(parameter_views(request.layout, sums, at::kLong)),
        limit_(fixed_point_limit(request.window)),
        overflow_(at::zeros({1}, sums_.front().options().dtype(at::kByte))) {}

  void add(int parameter, const at::Tensor& gradient) override {
    ops::add_fixed_point(sums_[entry_of(parameter)], gradient.to(at::kFloat).contiguous(), limit_, overflow_);
  }

  void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) override {
    add(parameter, product(left, right));
  }

  // No row comes twice, so that each has one addend of this minibatch, as everywhere.
  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    const at::Tensor values = rows.to(at::kFloat).contiguous();
    const at::Tensor limits = at::full({index.numel()}, limit_, values.options());
    ops::add_fixed_point_rows(sums_[entry_of(parameter)], index, values, limits, overflow_);
  }

  Noted<bool> take_overflow() override {
    Noted<bool> overflowed =
        overflow_.is_cpu() ? Noted<bool>(overflow_.item<std::uint8_t>() != 0) : device_->flag(to_buffer(overflow_));
    overflow_.zero_();
    return overflowed;
  }

  at::Tensor exchange_overflow(at::Tensor flag) override {
    return std::exchange(overflow_, flag.defined() ? std::move(flag) : at::zeros_like(overflow_));
  }

  void count_overflow(const at::Tensor& flag) override { overflow_.bitwise_or_(flag); }

 private:
  DeviceMemory* const device_;
  Tensors sums_;
  const float limit_;
  at::Tensor overflow_;
};

}  // namespace

std::unique_ptr<StageGradients> make_stage_gradients(const StageRequest& request, int parity) {
  const Buffer& sums = request.memory.gradients.at(static_cast<std::size_t>(parity));
  if (request.accumulation == Accumulation::kFloat) return std::make_unique<FloatGradients>(request.layout, sums);
  return std::make_unique<FixedPointGradients>(request, sums);
}

Tensors parameter_views(const StageLayout& layout, const Buffer& buffer, at::ScalarType type) {
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(type));
  EVERSTEP_CHECK(std::ssize(buffer.as<std::byte>()) == layout.elements * bytes,
                 "a stage's buffer has its layout's size");
  Tensors views;
  for (const StageLayout::Entry& entry : layout.entries) {
    views.push_back(
        to_tensor(buffer.part(entry.offset * bytes, entry.parameter.elements() * bytes), entry.parameter.shape, type));
  }
  return views;
}

}  // namespace everstep::trainer
