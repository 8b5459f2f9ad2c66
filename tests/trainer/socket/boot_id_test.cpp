#include "trainer/socket/boot_id.h"

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(BootId, IsOneLine) {
  EXPECT_EQ(boot_id(), boot_id());
  EXPECT_EQ(boot_id().find_first_of("\n /"), std::string::npos);
  EXPECT_FALSE(boot_id().empty());
}

}  // namespace
}  // namespace everstep::trainer
