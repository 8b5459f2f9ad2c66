#include "trainer/torch/product.h"

#include "trainer/torch/cpu_ops.h"
#include "trainer/torch/ops.h"
#include "trainer/torch/wide_product.h"

namespace everstep::trainer {
namespace {

FloatMatrix matrix_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.size(0), tensor.size(1), tensor.stride(0), tensor.stride(1)};
}

bool is_wide(const at::Tensor& left, const at::Tensor& right) {
  return left.scalar_type() == at::kFloat && left.numel() > 0 && right.numel() > 0 && has_wide_product();
}

}  // namespace

void cpu::multiply(const Tensor& result, const Tensor& left, const Tensor& right, const std::optional<Tensor>& bias) {
  Tensor target = result;
  if (is_wide(left, right)) {
    const Addend addend{bias ? bias->const_data_ptr<float>() : nullptr, 0};
    wide_product(matrix_of(left), matrix_of(right), addend, target.mutable_data_ptr<float>(), right.size(1));
  } else if (bias) {
    at::addmm_out(target, *bias, left, right);
  } else {
    at::mm_out(target, left, right);
  }
}

void cpu::add_product(const Tensor& sums, const Tensor& left, const Tensor& right) {
  if (is_wide(left, right)) {
    auto* const data = sums.mutable_data_ptr<float>();
    wide_product(matrix_of(left), matrix_of(right), {data, right.size(1)}, data, right.size(1));
  } else {
    sums.addmm_(left, right);
  }
}

at::Tensor product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias) {
  at::Tensor result = at::empty({left.size(0), right.size(1)}, left.options());
  ops::multiply(result, left, right, bias.defined() ? std::optional(bias) : std::nullopt);
  return result;
}

}  // namespace everstep::trainer
