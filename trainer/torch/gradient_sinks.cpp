#include "trainer/torch/gradient_sinks.h"

#include <map>
#include <span>

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
      sum.addmm_(left, right);
    } else {
      sum.add_(left.mm(right));
    }
  }

  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    sums_[entry_of(parameter)].index_add_(0, index, rows);
  }

  bool take_overflow() override { return false; }  // the optimizer sees infinities and NaNs itself

 private:
  Tensors sums_;
};

class FixedPointGradients final : public StageGradients {
 public:
  FixedPointGradients(const StageLayout& layout, const Buffer& sums, std::int64_t window)
      : sums_(parameter_views(layout, sums, at::kLong)), window_(window) {}

  void add(int parameter, const at::Tensor& gradient) override {
    add_floats(sums_[entry_of(parameter)], gradient, fixed_point_limit(window_));
  }

  void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) override {
    add(parameter, left.mm(right));
  }

  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    const auto row_of = index.accessor<std::int64_t, 1>();
    std::map<std::int64_t, std::int64_t> addends;  // of this minibatch, by row
    for (std::int64_t i = 0; i < index.numel(); ++i) ++addends[row_of[i]];
    for (std::int64_t i = 0; i < index.numel(); ++i) {
      const float limit = fixed_point_limit(window_ * addends.at(row_of[i]));
      add_floats(sums_[entry_of(parameter)].select(0, row_of[i]), rows.select(0, i), limit);
    }
  }

  bool take_overflow() override { return std::exchange(overflowed_, false); }

 private:
  void add_floats(const at::Tensor& sums, const at::Tensor& gradient, float limit) {
    const at::Tensor values = gradient.to(at::kFloat).contiguous();
    const auto size = static_cast<std::size_t>(values.numel());
    EVERSTEP_CHECK(sums.numel() == values.numel(), "a gradient has its parameter's size");
    const std::span target(sums.mutable_data_ptr<std::int64_t>(), size);
    if (!add_fixed_point(target, {values.const_data_ptr<float>(), size}, limit)) overflowed_ = true;
  }

  Tensors sums_;
  const std::int64_t window_;
  bool overflowed_ = false;
};

}  // namespace

std::unique_ptr<StageGradients> make_stage_gradients(const StageRequest& request, int parity) {
  const Buffer& sums = request.memory.gradients.at(static_cast<std::size_t>(parity));
  if (request.accumulation == Accumulation::kFloat) return std::make_unique<FloatGradients>(request.layout, sums);
  return std::make_unique<FixedPointGradients>(request.layout, sums, request.window);
}

Tensors parameter_views(const StageLayout& layout, const Buffer& buffer, at::ScalarType type) {
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(type));
  EVERSTEP_CHECK(std::ssize(buffer.as<std::byte>()) == layout.elements * bytes,
                 "a stage's buffer has its layout's size");
  Tensors views;
  for (const StageLayout::Entry& entry : layout.entries) {
    views.push_back(at::from_blob(buffer.data + entry.offset * bytes, entry.parameter.shape, type));
  }
  return views;
}

}  // namespace everstep::trainer
