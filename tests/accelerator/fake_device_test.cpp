#include "tests/accelerator/fake_device.h"

#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/accelerator/prepared_device.h"

namespace everstep::accelerator {
namespace {

using testing::HasSubstr;

class FakeDevice : public testing::Test {
 protected:
  void TearDown() override { race_report(); }  // of what the test leaves behind on purpose

  static c10::Event recorded(const c10::Stream& stream) {
    c10::Event event(c10::DeviceType::PrivateUse1);
    event.record(stream);
    return event;
  }

  static std::int64_t waits() { return fake_accelerator().counters().waits; }

  const c10::Device device = prepared_device();
  const c10::impl::VirtualGuardImpl guard{c10::DeviceType::PrivateUse1};
  const c10::Stream first = guard.getDefaultStream(device);
  const c10::Stream second = guard.getStreamFromGlobalPool(device);
};

TEST_F(FakeDevice, HasAName) {
  EXPECT_EQ(device.str(), "fake:0");
  EXPECT_EQ(c10::Device("fake:0"), device);
  EXPECT_EQ(at::ones({2}, on_fake()).device(), device);
}

TEST_F(FakeDevice, LaunchesWithoutWaiting) {
  const auto before = fake_accelerator().counters();
  at::Tensor value = at::ones({64, 64}, on_fake());
  for (int i = 0; i < 10; ++i) value = value.mm(value).mul_(1.0 / 64);
  EXPECT_EQ(waits(), before.waits);
  EXPECT_GE(fake_accelerator().counters().launches, before.launches + 20);
  EXPECT_EQ(value[3][4].item<float>(), 1);
  EXPECT_EQ(waits(), before.waits + 1);
}

TEST_F(FakeDevice, CountsWhatNeedsANumberOnTheHost) {
  const at::Tensor value = at::ones({8}, on_fake(at::kLong));
  const auto count = [&](const auto& call) {
    const std::int64_t before = waits();
    call();
    return waits() - before;
  };
  EXPECT_EQ(count([&] { value.sum(); }), 0);
  EXPECT_EQ(count([&] { value.sum().item(); }), 1);
  EXPECT_EQ(count([&] { value.nonzero(); }), 1);
  EXPECT_EQ(count([&] { at::_unique2(value, true, true, false); }), 1);
  EXPECT_EQ(count([&] { EXPECT_TRUE(at::equal(value, value)); }), 1);
  EXPECT_EQ(count([&] { value.cpu(); }), 1);
  EXPECT_EQ(count([&] { at::ones({8}).to(device); }), 1);
  EXPECT_EQ(count([&] { at::ones({8}).to(device, at::kFloat, true); }), 1) << "not pinned";
  EXPECT_EQ(count([&] { at::ones({8}).pin_memory().to(device, at::kFloat, true); }), 0);
}

TEST_F(FakeDevice, AsksForMemoryOnlyAtFirst) {
  const auto use = [] { at::ones({1000, 3}, on_fake()).add_(1).mul(2); };
  use();
  const auto before = fake_accelerator().counters().allocations;
  for (int i = 0; i < 5; ++i) use();
  EXPECT_EQ(fake_accelerator().counters().allocations, before);
}

TEST_F(FakeDevice, LearnsShapesOnce) {
  const at::Tensor value = at::ones({11, 24}, on_fake());
  const at::Tensor weight = at::ones({24}, on_fake());
  at::native_layer_norm(value, {24}, weight, weight, 1e-5);
  const auto before = dry_runs();
  at::native_layer_norm(value * 2, {24}, weight, weight, 1e-5);
  EXPECT_EQ(dry_runs(), before);
  at::native_layer_norm(value, {24}, weight, weight, 1e-4);
  EXPECT_EQ(dry_runs(), before + 1);
}

TEST_F(FakeDevice, PinsMemory) {
  const at::Tensor pinned = at::empty({100}, at::TensorOptions(at::kFloat).pinned_memory(true));
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_TRUE(at::ones({3}).pin_memory().is_pinned());
  EXPECT_FALSE(at::ones({3}).is_pinned());
}

TEST_F(FakeDevice, SeesMemoryOfTheTrainerAsTensors) {
  void* const memory = fake_accelerator().allocate(4096, current_stream());
  {
    at::Tensor view = at::from_blob(static_cast<std::byte*>(memory) + 1024, {16}, on_fake());
    view.fill_(3);
    view.record_stream(second);
    EXPECT_EQ(view.sum().item<float>(), 48);
  }
  fake_accelerator().release(memory);
  EXPECT_EQ(race_report(), "");
}

TEST_F(FakeDevice, TimesWorkByEvents) {
  c10::Event begin(c10::DeviceType::PrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(c10::DeviceType::PrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  begin.record(first);
  at::ones({64, 64}, on_fake()).add_(1);
  end.record(first);
  end.synchronize();
  EXPECT_GT(begin.elapsedTime(end), 0);
}

TEST_F(FakeDevice, RefusesTensorsOfTheHost) {
  const at::Tensor table = at::ones({5, 3}, on_fake());
  EXPECT_ANY_THROW(table.index_select(0, at::zeros({2}, at::kLong)));
}

TEST_F(FakeDevice, OutputsGetTheirSizeInTime) {
  at::Tensor out = at::empty({0}, on_fake());
  at::arange_out(out, 5);
  EXPECT_EQ(out.numel(), 5);
  EXPECT_EQ(out.sum().item<float>(), 10);
}

// ---- mistakes ----

at::Tensor produced() { return at::ones({256}, on_fake()).add_(41); }

TEST_F(FakeDevice, FindsNothingWhereStreamsWait) {
  at::Tensor value = produced();
  const c10::Event done = recorded(first);
  at::Tensor result;
  {
    const c10::StreamGuard on_second(second);
    done.block(second);
    result = value * 2;
    value.record_stream(second);
    value = at::Tensor();
    EXPECT_EQ(result[7].item<float>(), 84);
  }
  second.synchronize();
  EXPECT_EQ(race_report(), "");
}

TEST_F(FakeDevice, FindsAMissingWaitForAnEvent) {
  at::Tensor value = produced();
  const c10::Event done = recorded(first);
  {
    const c10::StreamGuard on_second(second);
    const at::Tensor result = value * 2;
  }
  EXPECT_THAT(race_report(), HasSubstr("'aten::add' on stream 0 writes, and nothing orders them"));
}

TEST_F(FakeDevice, FindsAMissingRecordStream) {
  at::Tensor value = produced();
  const c10::Event done = recorded(first);
  {
    const c10::StreamGuard on_second(second);
    done.block(second);
    const at::Tensor result = value * 2;
  }
  EXPECT_EQ(race_report(), "");
  value = at::Tensor();
  EXPECT_THAT(race_report(), HasSubstr("record_stream() before the memory is freed"));
}

TEST_F(FakeDevice, FindsPinnedMemoryReadTooEarly) {
  const at::Tensor staging = at::empty({256}, at::TensorOptions(at::kFloat).pinned_memory(true));
  staging.copy_(produced(), true);
  const c10::Event done = recorded(first);
  EXPECT_GE(staging.const_data_ptr<float>()[3], -1e30F);
  EXPECT_THAT(race_report(), HasSubstr("the host reads pinned memory while 'copy to the host' on stream 0 writes it"));
  done.synchronize();
  EXPECT_EQ(staging.const_data_ptr<float>()[3], 42);
  EXPECT_EQ(race_report(), "");
}

TEST_F(FakeDevice, FindsPinnedMemoryWrittenTooEarly) {
  const at::Tensor staging = at::ones({256}).pin_memory();
  const at::Tensor value = staging.to(device, at::kFloat, true);
  staging.mutable_data_ptr<float>()[3] = 5;
  EXPECT_THAT(race_report(), HasSubstr("the host writes pinned memory while 'copy to the device'"));
}

TEST_F(FakeDevice, FindsAHostThatReadsDeviceMemory) {
  const at::Tensor value = produced();
  first.synchronize();
  EXPECT_EQ(*static_cast<const volatile float*>(value.const_data_ptr()), 42);
  EXPECT_THAT(race_report(), HasSubstr("the host reads device memory"));
}

TEST_F(FakeDevice, FindsAThreadThatKnowsNothingOfAnothersWait) {
  const at::Tensor value = produced();
  first.synchronize();
  std::thread([&] {
    const c10::StreamGuard on_second(second);
    const at::Tensor result = value * 2;
    second.synchronize();
  }).join();
  EXPECT_THAT(race_report(), HasSubstr("nothing orders them"));
  fake_accelerator().synchronize_device();
}

}  // namespace
}  // namespace everstep::accelerator
