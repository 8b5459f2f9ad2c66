#include "trainer/model/buffer.h"

#include <cstring>
#include <new>

namespace everstep::trainer {

Buffer allocate_scratch(std::size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  void* const memory = ::operator new(bytes, kAlignment);
  return {{memory, [](void* block) { ::operator delete(block, kAlignment); }}, static_cast<std::byte*>(memory), bytes};
}

Buffer allocate_zeroed(std::size_t bytes) {
  Buffer buffer = allocate_scratch(bytes);
  std::memset(buffer.data, 0, bytes);
  return buffer;
}

void copy_into(Buffer& target, const Buffer& source) {
  if (target.size != source.size) target = allocate_scratch(source.size);
  if (!source.empty()) std::memcpy(target.data, source.data, source.size);
}

}  // namespace everstep::trainer
