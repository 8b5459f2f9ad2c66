#include "tests/accelerator/fake_device.h"

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "base/check.h"
#include "tests/accelerator/device_tensors.h"
#include "tests/accelerator/operators.h"

namespace everstep::accelerator {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr std::size_t kPoolStreams = 32;  // as CUDA's in LibTorch

// Tensors of static storage may outlive main().
Accelerator* the_accelerator = nullptr;

thread_local StreamId stream_here = 0;

void release_device(void* address) { fake_accelerator().release(address); }
void release_pinned(void* address) { fake_accelerator().release_pinned(address); }

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release_device, fake_device()};
    void* const block = fake_accelerator().allocate(bytes, current_stream());
    return {block, block, &release_device, fake_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_device; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    fake_accelerator().copy(current_stream(), to, from, bytes);
  }
};

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const block = fake_accelerator().allocate_pinned(bytes);
    return {block, block, &release_pinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

struct DeviceGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device /*next*/) const override { return fake_device(); }
  c10::Device getDevice() const override { return fake_device(); }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device /*device*/) const override { return stream(current_stream()); }
  c10::Stream getDefaultStream(c10::Device /*device*/) const override { return stream(0); }
  c10::Stream getNewStream(c10::Device /*device*/, int /*priority*/) const override {
    return stream(fake_accelerator().new_stream());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device /*device*/, bool /*high_priority*/) const override {
    static std::mutex mutex;
    static std::vector<StreamId> pool;
    static std::size_t next = 0;
    const std::lock_guard lock(mutex);
    if (pool.size() < kPoolStreams) pool.push_back(fake_accelerator().new_stream());
    return stream(pool[next++ % kPoolStreams]);
  }
  void* getStreamNativeHandle(const c10::Stream each) const override { return native_handle(each.id()); }
  c10::Stream exchangeStream(c10::Stream next) const override { return stream(std::exchange(stream_here, next.id())); }
  bool queryStream(const c10::Stream& each) const override { return fake_accelerator().query(each.id()); }
  void synchronizeStream(const c10::Stream& each) const override { fake_accelerator().synchronize(each.id()); }
  void synchronizeDevice(c10::DeviceIndex /*device*/) const override { fake_accelerator().synchronize_device(); }

  // CUDA's events have a time only if asked to.
  void record(void** event, const c10::Stream& each, c10::DeviceIndex /*device*/, c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = fake_accelerator().record(each.id(), flag == c10::EventFlag::BACKEND_DEFAULT);
  }
  void block(void* event, const c10::Stream& each) const override {
    if (event != nullptr) fake_accelerator().wait(each.id(), *static_cast<Event*>(event));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || fake_accelerator().query(*static_cast<Event*>(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) fake_accelerator().synchronize(*static_cast<Event*>(event));
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex /*device*/) const override {
    const auto time = Accelerator::elapsed(*static_cast<Event*>(from), *static_cast<Event*>(to));
    return std::chrono::duration<double, std::milli>(time).count();
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& each) const override {
    if (data.get() != nullptr) fake_accelerator().record_stream(data.get(), each.id());
  }

  static c10::Stream stream(StreamId id) { return c10::Stream(c10::Stream::UNSAFE, fake_device(), id); }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex /*device*/) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  c10::Device getDeviceFromPtr(void* /*data*/) const override { return fake_device(); }
  bool isPinnedPtr(const void* data) const override { return fake_accelerator().is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedAllocator allocator;
    return &allocator;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

}  // namespace

void register_fake_accelerator(const Options& options) {
  EVERSTEP_CHECK(the_accelerator == nullptr, "a process has one fake accelerator");
  the_accelerator = new Accelerator(options);
  static DeviceAllocator allocator;
  static const DeviceGuard guard;
  static Hooks hooks;
  c10::register_privateuse1_backend("fake");
  c10::SetAllocator(kType, &allocator);
  static const c10::impl::DeviceGuardImplRegistrar guard_registrar(kType, &guard);
  at::RegisterPrivateUse1HooksInterface(&hooks);
  register_device_tensors();
  register_operators();
}

c10::Device fake_device() { return {kType, 0}; }

Accelerator& fake_accelerator() {
  EVERSTEP_CHECK(the_accelerator != nullptr, "register_fake_accelerator() comes first");
  return *the_accelerator;
}

std::string race_report() {
  std::string text;
  for (const Mistake& mistake : fake_accelerator().take_mistakes()) text += mistake.text + "\n";
  return text;
}

StreamId current_stream() { return stream_here; }

}  // namespace everstep::accelerator
