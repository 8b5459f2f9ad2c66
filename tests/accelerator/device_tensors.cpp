#include "tests/accelerator/device_tensors.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "tests/accelerator/fake_device.h"
#include "tests/accelerator/kernel_tensors.h"

namespace everstep::accelerator {
namespace {

constexpr auto kKey = c10::DispatchKey::PrivateUse1;

c10::Allocator* allocator() { return c10::GetAllocator(c10::DeviceType::PrivateUse1); }

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> /*device*/, std::optional<bool> /*pinned*/,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, allocator(), c10::DispatchKeySet(kKey), c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                         std::optional<bool> /*pinned*/) {
  return at::detail::empty_strided_generic(size, stride, allocator(), c10::DispatchKeySet(kKey),
                                           c10::dtype_or_default(type));
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!format || *format == at::MemoryFormat::Contiguous, "the fake device resizes to dense tensors only");
  if (self.sizes() == size) return self;
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const std::size_t bytes = static_cast<std::size_t>(self.storage_offset() + impl->numel()) * self.element_size();
  if (bytes > self.storage().nbytes()) resize_storage(self.storage(), bytes);
  return self;
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) { return at::native::view(self, size); }
at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

// Also of tensors over memory that the trainer manages, which begin anywhere in it.
void record_stream(at::Tensor& self, c10::Stream stream) {
  if (self.storage().nbytes() > 0) fake_accelerator().record_stream(self.storage().mutable_data(), stream.id());
}

// ---- copies ----

void launch_copy(const char* what, const at::Tensor& to, const at::Tensor& from, const std::vector<Access>& accesses) {
  fake_accelerator().launch(current_stream(), what, accesses,
                            [to, from] { as_kernel([&] { at::Tensor(to).copy_(from); }); });
}

// Where kernels reach both.
void copy_in_reach(const char* what, const at::Tensor& to, const at::Tensor& from) {
  std::vector<Access> accesses;
  add_accesses(from, false, accesses);
  add_accesses(to, true, accesses);
  launch_copy(what, seen_by_kernel(to), seen_by_kernel(from), accesses);
}

// The driver stages what is not pinned, and the host waits.
void copy_unpinned_to_device(const at::Tensor& to, const at::Tensor& from) {
  std::vector<Access> accesses;
  add_accesses(to, true, accesses);
  launch_copy("copy to the device", seen_by_kernel(to), from.clone(), accesses);
}

void copy_to_unpinned(const at::Tensor& to, const at::Tensor& from) {
  std::vector<Access> accesses;
  add_accesses(from, false, accesses);
  launch_copy("copy to the host", to, seen_by_kernel(from), accesses);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  const at::Tensor source = from.expand(to.sizes());
  if (on_device(from) && on_device(to)) {
    copy_in_reach("copy", to, source);
    return to;
  }
  const bool to_device = on_device(to);
  const bool pinned = fake_accelerator().is_pinned((to_device ? from : to).data_ptr());
  fake_accelerator().count_copy(to_device);
  if (pinned) {
    copy_in_reach(to_device ? "copy to the device" : "copy to the host", to, source);
  } else if (to_device) {
    copy_unpinned_to_device(to, source);
  } else {
    copy_to_unpinned(to, source);
  }
  if (!pinned || !non_blocking) fake_accelerator().synchronize(current_stream());
  return to;
}

at::Scalar local_scalar(const at::Tensor& self) {
  std::vector<Access> accesses;
  add_accesses(self, false, accesses);
  const auto value = std::make_shared<at::Scalar>();
  fake_accelerator().launch(current_stream(), "item", accesses,
                            [value, seen = seen_by_kernel(self)] { as_kernel([&] { *value = seen.item(); }); });
  fake_accelerator().synchronize(current_stream());
  return *value;
}

}  // namespace

void resize_storage(const c10::Storage& storage, std::size_t bytes) {
  c10::DataPtr data = allocator()->allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) fake_accelerator().copy(current_stream(), data.get(), storage.data(), kept);
  storage.set_data_ptr(std::move(data));
  storage.set_nbytes(bytes);
}

void register_device_tensors() {
  static torch::Library aten(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  aten.impl("empty.memory_format", &empty);
  aten.impl("empty_strided", &empty_strided);
  aten.impl("resize_", &resize);
  aten.impl("_copy_from", &copy_from);
  aten.impl("_local_scalar_dense", &local_scalar);
  aten.impl("record_stream", &record_stream);
  aten.impl("as_strided", &as_strided);
  aten.impl("view", &view);
  aten.impl("_reshape_alias", &reshape_alias);
}

}  // namespace everstep::accelerator
