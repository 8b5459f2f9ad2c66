#include "trainer/torch/amx.h"

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(Amx, CrashesWhereItIsAnnouncedButItsTilesAreHidden) {
  EXPECT_TRUE(amx_would_crash({.announced = true, .highest_leaf = 0x1C, .palettes = 0}));
  EXPECT_TRUE(amx_would_crash({.announced = true, .highest_leaf = 0x1F, .palettes = 0}));
}

TEST(Amx, IsUsedWhereItsTilesAreKnown) {
  EXPECT_FALSE(amx_would_crash({.announced = true, .highest_leaf = 0x1F, .palettes = 1}));
}

TEST(Amx, IsNoMatterWhereThereIsNone) {
  EXPECT_FALSE(amx_would_crash({.announced = false, .highest_leaf = 0x1F, .palettes = 0}));
  EXPECT_FALSE(amx_would_crash({}));
}

}  // namespace
}  // namespace everstep::trainer
