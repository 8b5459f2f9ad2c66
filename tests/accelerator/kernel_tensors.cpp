#include "tests/accelerator/kernel_tensors.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <c10/core/GradMode.h>

#include "tests/accelerator/fake_device.h"

namespace everstep::accelerator {
namespace {

constexpr std::int64_t kMostPieces = 256;

struct Dimension {
  std::int64_t size = 0;
  std::int64_t stride = 0;
};

// From the innermost out, without those that add no bytes, and joined where one continues another.
std::vector<Dimension> dimensions_of(const at::Tensor& tensor) {
  std::vector<Dimension> all;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) > 1 && tensor.stride(i) > 0) all.push_back({tensor.size(i), tensor.stride(i)});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.stride < b.stride; });
  std::vector<Dimension> joined{{1, 1}};
  for (const Dimension& next : all) {
    Dimension& last = joined.back();
    if (next.stride == last.size * last.stride) {
      last.size *= next.size;
    } else {
      joined.push_back(next);
    }
  }
  return joined;
}

}  // namespace

bool on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

at::Tensor seen_by_kernel(const at::Tensor& tensor) {
  const auto options = at::TensorOptions(tensor.scalar_type()).device(c10::kCPU);
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  void* const data = fake_accelerator().kernel_address(tensor.data_ptr());
  return at::for_blob(data, tensor.sizes()).strides(tensor.strides()).options(options).make_tensor();
}

void add_accesses(const at::Tensor& tensor, bool writes, std::vector<Access>& accesses) {
  if (tensor.numel() == 0) return;
  const auto width = static_cast<std::int64_t>(tensor.element_size());
  const auto* const data = static_cast<const std::byte*>(tensor.data_ptr());
  std::vector<Dimension> outer = dimensions_of(tensor);
  const std::int64_t run = outer.front().size;  // elements side by side
  outer.erase(outer.begin());
  const auto pieces = std::accumulate(outer.begin(), outer.end(), std::int64_t{1},
                                      [](std::int64_t product, const auto& each) { return product * each.size; });
  if (pieces > kMostPieces) {
    std::int64_t last = run - 1;
    for (const Dimension& each : outer) last += (each.size - 1) * each.stride;
    accesses.push_back({data, static_cast<std::size_t>((last + 1) * width), writes});
    return;
  }
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    std::int64_t offset = 0;
    std::int64_t rest = piece;
    for (const Dimension& each : outer) {
      offset += rest % each.size * each.stride;
      rest /= each.size;
    }
    accesses.push_back({data + offset * width, static_cast<std::size_t>(run * width), writes});
  }
}

void change_tensors(torch::jit::Stack& stack, std::size_t begin, const ChangeTensor& change) {
  for (std::size_t i = begin; i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    const auto changed = [&](const at::Tensor& tensor) {
      return tensor.defined() ? change(tensor, i - begin) : tensor;
    };
    if (value.isTensor()) {
      value = changed(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& one : value.toTensorVector()) list.push_back(changed(one));
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& one : value.toOptionalTensorVector()) {
        list.push_back(one ? std::optional(changed(*one)) : std::nullopt);
      }
      value = std::move(list);
    } else if (value.isDevice()) {
      value = c10::IValue(c10::Device(c10::kCPU));
    }
  }
}

void as_kernel(const std::function<void()>& function) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const c10::AutoGradMode no_recording(false);
  function();
}

}  // namespace everstep::accelerator
