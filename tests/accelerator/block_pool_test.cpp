#include "tests/accelerator/block_pool.h"

#include <new>

#include <gtest/gtest.h>

namespace everstep::accelerator {
namespace {

bool always(const Moment& /*moment*/) { return true; }
bool never(const Moment& /*moment*/) { return false; }

TEST(BlockPool, ServesTheSameStreamAgain) {
  BlockPool pool(1 << 20, 512);
  const auto first = pool.take(1000, 3, always);
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(first.block.bytes, 1024U);
  pool.give_back(first.block.offset, {});
  const auto again = pool.take(600, 3, never);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.block.offset, first.block.offset);
}

TEST(BlockPool, ServesNoOtherStream) {
  BlockPool pool(1 << 20, 512);
  pool.give_back(pool.take(512, 3, always).block.offset, {});
  EXPECT_TRUE(pool.take(512, 4, always).is_new);
}

TEST(BlockPool, KeepsABlockUntilItsGuestsAreDone) {
  BlockPool pool(1 << 20, 512);
  pool.give_back(pool.take(512, 3, always).block.offset, {{4, 7}});
  EXPECT_TRUE(pool.take(512, 3, [](const Moment& moment) { return moment.number <= 6; }).is_new);
  EXPECT_FALSE(pool.take(512, 3, [](const Moment& moment) { return moment.number <= 7; }).is_new);
}

TEST(BlockPool, KnowsWhoHoldsAByte) {
  BlockPool pool(1 << 20, 512);
  const auto first = pool.take(512, 0, always);
  const auto second = pool.take(512, 0, always);
  EXPECT_EQ(pool.holder_of(511)->offset, first.block.offset);
  EXPECT_EQ(pool.holder_of(512)->offset, second.block.offset);
  EXPECT_EQ(pool.holder_of(1024), nullptr);
  pool.give_back(first.block.offset, {});
  EXPECT_EQ(pool.holder_of(0), nullptr);
}

TEST(BlockPool, EndsWhereTheArenaEnds) {
  BlockPool pool(1024, 512);
  pool.take(1024, 0, always);
  EXPECT_THROW(pool.take(1, 0, always), std::bad_alloc);
}

}  // namespace
}  // namespace everstep::accelerator
