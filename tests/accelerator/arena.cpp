#include "tests/accelerator/arena.h"

#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

namespace everstep::accelerator {
namespace {

int protection(Rights rights) {
  if (rights == Rights::kNone) return PROT_NONE;
  return rights == Rights::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
}

std::byte* map(int file, std::size_t bytes, Rights rights) {
  void* const address = ::mmap(nullptr, bytes, protection(rights), MAP_SHARED | MAP_NORESERVE, file, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(address);
}

}  // namespace

Arena::Arena(std::size_t bytes, Rights host_rights) : size_((bytes + kPage - 1) / kPage * kPage) {
  const int file = ::memfd_create("fake-accelerator", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size_)) != 0) throw std::bad_alloc();
  host_ = map(file, size_, host_rights);
  kernel_ = map(file, size_, Rights::kAll);
  ::close(file);
}

Arena::~Arena() {
  ::munmap(host_, size_);
  ::munmap(kernel_, size_);
}

bool Arena::holds(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  return byte >= host_ && byte < host_ + size_;
}

void Arena::set_rights(std::size_t first_byte, std::size_t bytes, Rights rights) const {
  const std::size_t begin = first_byte / kPage * kPage;
  const std::size_t end = (first_byte + bytes + kPage - 1) / kPage * kPage;
  if (begin == end) return;
  EVERSTEP_CHECK(::mprotect(host_ + begin, end - begin, protection(rights)) == 0, "the rights of pages can be changed");
}

}  // namespace everstep::accelerator
