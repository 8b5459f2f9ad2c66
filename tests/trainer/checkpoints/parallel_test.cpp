#include "trainer/checkpoints/parallel.h"

#include <atomic>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(Parallel, DoesEachTaskOnce) {
  std::vector<std::atomic<int>> done(100);
  EXPECT_TRUE(for_each_in_parallel(done.size(), 4, [&](std::size_t i) {
                ++done[i];
                return Status();
              }).ok());
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

TEST(Parallel, ReturnsAFailureAndStartsNothingAfterIt) {
  std::atomic<int> started{0};
  const Status failed = for_each_in_parallel(1000, 1, [&](std::size_t i) -> Status {
    ++started;
    return i == 3 ? Status(not_found("number 3")) : Status();
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "number 3");
  EXPECT_EQ(started, 4);
}

TEST(Parallel, TurnsWhatIsThrownOnAnyThreadIntoAnError) {
  const Status no_memory = for_each_in_parallel(8, 4, [](std::size_t) -> Status { throw std::bad_alloc(); });
  ASSERT_FALSE(no_memory.ok());
  EXPECT_EQ(no_memory.error().message, "out of memory");
  const Status other = for_each_in_parallel(8, 4, [](std::size_t) -> Status { throw std::runtime_error("why"); });
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "why");
}

}  // namespace
}  // namespace everstep::trainer
