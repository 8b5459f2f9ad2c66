#include "launcher/supervise/etcd_directory.h"

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

TEST(EtcdDirectory, StaysUntilNobodyHoldsItAnyMore) {
  const TemporaryDirectory run;
  auto held = EtcdDirectory::make(run.path());
  ASSERT_TRUE(held.ok()) << held.error();
  const std::filesystem::path data = (*held)->path();
  EXPECT_EQ(std::filesystem::status(data).permissions(), std::filesystem::perms::owner_all);
  remove_left_etcd_data(run.path());
  EXPECT_TRUE(std::filesystem::exists(data));
  held->reset();
  EXPECT_TRUE(std::filesystem::exists(data)) << "after a failure somebody may want to look at it";
  remove_left_etcd_data(run.path());
  EXPECT_FALSE(std::filesystem::exists(data));
}

TEST(EtcdDirectory, IsRemovedWhereItIsHeld) {
  const TemporaryDirectory run;
  const auto held = EtcdDirectory::make(run.path());
  ASSERT_TRUE(held.ok()) << held.error();
  std::filesystem::create_directory((*held)->path() / "member");
  (*held)->remove();
  EXPECT_FALSE(std::filesystem::exists((*held)->path()));
}

TEST(EtcdDirectory, IsNothingElseThatIsInTheRunsDirectory) {
  const TemporaryDirectory run;
  for (const char* name : {"etcd-mine", "etcd", "checkpoints"}) std::filesystem::create_directory(run.path() / name);
  remove_left_etcd_data(run.path());
  remove_left_etcd_data(run.path() / "nowhere");
  for (const char* name : {"etcd-mine", "etcd", "checkpoints"}) EXPECT_TRUE(std::filesystem::exists(run.path() / name));
}

}  // namespace
}  // namespace everstep::launcher
