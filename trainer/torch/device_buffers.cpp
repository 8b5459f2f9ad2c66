#include "trainer/torch/device_buffers.h"

#include <memory>
#include <utility>

#include "base/check.h"

namespace everstep::trainer {

Buffer to_buffer(const at::Tensor& tensor) {
  auto owner = std::make_shared<at::Tensor>(tensor.contiguous());
  auto* const data = static_cast<std::byte*>(owner->mutable_data_ptr());
  const std::size_t bytes = owner->nbytes();
  return {std::move(owner), data, bytes, tensor.is_cpu() ? Buffer::Place::kHost : Buffer::Place::kDevice};
}

const at::Tensor& owner_of(const Buffer& buffer) {
  EVERSTEP_CHECK(buffer.place != Buffer::Place::kHost, "the host's ordinary memory is no tensor's");
  return *static_cast<const at::Tensor*>(buffer.owner.get());
}

at::Tensor to_tensor(const Buffer& buffer, at::IntArrayRef shape, at::ScalarType type) {
  if (buffer.place == Buffer::Place::kHost) {
    return at::from_blob(
        buffer.data, shape, [owner = buffer.owner](void*) {}, type);
  }
  const at::Tensor& whole = owner_of(buffer);
  const auto element = static_cast<std::ptrdiff_t>(c10::elementSize(type));
  const std::ptrdiff_t offset = buffer.data - static_cast<const std::byte*>(whole.storage().data());
  EVERSTEP_CHECK(offset % element == 0, "a tensor begins at a multiple of its element's size");
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(whole.storage()), whole.key_set(),
                                                         c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset / element);
  return tensor;
}

}  // namespace everstep::trainer
