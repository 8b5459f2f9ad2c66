// Memory of the device by itself.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/prepared_device.h"
#include "trainer/update/host_memory.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using Work = DeviceMemory::Work;

TEST(MemoryOfADevice, DoesNothingWithEmptyBuffers) {
  forget_mistakes();
  const auto device = plain_memory(0);
  for (DeviceMemory* memory : {static_cast<DeviceMemory*>(device.get()), &host_memory()}) {
    for (const Buffer& empty : {Buffer{}, memory->allocate_zeroed(0)}) {
      memory->zero(empty);
      memory->copy(empty, empty);
      memory->swap(empty, empty);
      memory->add_sums(Accumulation::kFixedPoint, empty, empty);
      memory->adamw(Accumulation::kFloat, {}, {empty, empty, empty, empty});
      memory->round_to_bf16(empty, empty);
      EXPECT_TRUE(has_passed(memory->copy_out(empty, empty, DeviceMemory::Lane::kBulk)));
      EXPECT_TRUE(memory->fetch(empty).empty());
      const auto sum = memory->sum_of_squares(Accumulation::kFloat, empty);
      const auto flag = memory->not_finite(Precision::kBf16, empty);
      const auto hash = memory->hash(empty);
      memory->wait_gathered();
      EXPECT_EQ(sum.value(), 0);
      EXPECT_FALSE(flag.value());
      EXPECT_EQ(hash.value(), host_memory().hash({}).value());
    }
  }
  EXPECT_EQ(race_report(), "");
}

TEST(MemoryOfADevice, TellsOfEveryMark) {
  forget_mistakes();
  std::vector<Work> told;
  TorchDeviceMemory memory(prepared_device(), [&](Work work, const Mark& mark) {
    EXPECT_NE(mark, nullptr);
    told.push_back(work);
  });
  const Buffer buffer = memory.allocate_zeroed(64);
  wait_for(memory.mark());
  EXPECT_EQ(told, std::vector{Work::kCompute});
  wait_for(memory.copy_out(memory.allocate_pinned(64), buffer, DeviceMemory::Lane::kWire));
  EXPECT_EQ(told.back(), Work::kWireCopies);
  memory.fetch(buffer);
  EXPECT_EQ(told.back(), Work::kBulkCopies);
  const auto sum = memory.sum_of_squares(Accumulation::kFloat, buffer);
  memory.wait_gathered();
  EXPECT_EQ(told.back(), Work::kWireCopies);
  EXPECT_EQ(told.size(), 4U);
  EXPECT_EQ(sum.value(), 0);
  EXPECT_EQ(race_report(), "");
}

}  // namespace
}  // namespace everstep::accelerator
