#include "tests/cuda_runtime/state.h"

#include <algorithm>
#include <iterator>

#include <sys/mman.h>
#include <unistd.h>

namespace everstep::null_cuda {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSharedBytes = std::size_t{64} << 20;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

int shared_file() {
  static const int file = [] {
    const int made = memfd_create("shared pinned memory", 0);
    return ftruncate(made, kSharedBytes) == 0 ? made : -1;
  }();
  return file;
}

void* map(std::size_t bytes, int rights) {
  void* const address = mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

// The same few bytes, again and again.
void* map_shared(std::size_t bytes) {
  auto* const begin = static_cast<std::byte*>(map(bytes, PROT_NONE));
  for (std::size_t offset = 0; begin != nullptr && offset < bytes; offset += kSharedBytes) {
    const std::size_t part = std::min(kSharedBytes, bytes - offset);
    void* const mapped = mmap(begin + offset, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared_file(), 0);
    if (mapped == MAP_FAILED) return nullptr;
  }
  return begin;
}

struct Names {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> by_function;
};

// Never destroyed: LibTorch registers kernels before main() and uses streams after it.
Names& names() {
  static auto* const made = new Names;
  return *made;
}

}  // namespace

AddressBook& addresses() {
  static auto* const made = new AddressBook;
  return *made;
}

Timeline& timeline() {
  static auto* const made = new Timeline;
  return *made;
}

ThreadState& here() {
  thread_local ThreadState state;
  return state;
}

void* AddressBook::allocate_gpu(int gpu, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  GpuBytes& used = bytes_.at(static_cast<std::size_t>(gpu));
  const auto size = static_cast<std::int64_t>(bytes);
  void* const address = used.now + size > kGpuBytes ? nullptr : map(whole_pages(bytes), PROT_NONE);
  if (address == nullptr) return nullptr;
  used.now += size;
  used.most = std::max(used.most, used.now);
  entries_[static_cast<std::byte*>(address)] = {Where::kGpu, gpu, bytes, false};
  return address;
}

void* AddressBook::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool is_shared = bytes >= kSharedPinnedBytes;
  const std::size_t whole = whole_pages(bytes);
  void* const address = is_shared ? map_shared(whole) : map(whole, PROT_READ | PROT_WRITE);
  if (address != nullptr) entries_[static_cast<std::byte*>(address)] = {Where::kPinned, 0, bytes, is_shared};
  return address;
}

void AddressBook::release(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(static_cast<std::byte*>(address));
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  if (entry.where == Where::kGpu) {
    bytes_.at(static_cast<std::size_t>(entry.gpu)).now -= static_cast<std::int64_t>(entry.bytes);
  }
  munmap(address, whole_pages(entry.bytes));
  entries_.erase(found);
}

AddressBook::Entry AddressBook::at(const void* address) {
  const std::lock_guard lock(mutex_);
  auto* const wanted = static_cast<std::byte*>(const_cast<void*>(address));
  const auto after = entries_.upper_bound(wanted);
  if (after == entries_.begin()) return {};
  const auto& [begin, entry] = *std::prev(after);
  return wanted < begin + entry.bytes ? entry : Entry{};
}

GpuBytes AddressBook::bytes_of(int gpu) {
  const std::lock_guard lock(mutex_);
  return bytes_.at(static_cast<std::size_t>(gpu));
}

void AddressBook::forget_most(int gpu) {
  const std::lock_guard lock(mutex_);
  GpuBytes& used = bytes_.at(static_cast<std::size_t>(gpu));
  used.most = used.now;
}

void name_function(const void* function, const char* name) {
  const std::lock_guard lock(names().mutex);
  names().by_function[function] = name;
}

std::string name_of(const void* function) {
  const std::lock_guard lock(names().mutex);
  const auto found = names().by_function.find(function);
  return found == names().by_function.end() ? "unknown" : found->second;
}

// ---- for tests ----

void set_pace(Pace pace) {
  const std::lock_guard lock(timeline().mutex);
  timeline().pace = pace;
}

Counts counts_of_this_thread() { return here().counts; }
std::string last_wait() { return here().last_wait; }
GpuBytes bytes_of(int gpu) { return addresses().bytes_of(gpu); }
void forget_most(int gpu) { addresses().forget_most(gpu); }

std::map<std::string, std::int64_t> take_launches() {
  std::map<std::string, std::int64_t> by_name;
  for (const auto& [function, count] : here().launches) by_name[name_of(function)] += count;
  here().launches.clear();
  return by_name;
}

}  // namespace everstep::null_cuda
