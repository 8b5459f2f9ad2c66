#include "trainer/nccl/nccl_api.h"

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

MakeNcclApi of_version(int version) {
  return [version] {
    NcclApi api;
    api.get_version = [version] { return version; };
    return api;
  };
}

TEST(NcclApis, AreFoundByTheKindOfDevice) {
  add_nccl("one kind", of_version(23007));
  EXPECT_TRUE(find_nccl("one kind"));
  EXPECT_EQ(
      find_nccl("another").error().line(),
      "this build has no NCCL for devices of the kind another (hint: --transport=host needs none; the preset cuda "
      "makes a build that has one for GPUs)");
}

TEST(NcclApis, AreRefusedIfTheyCannotRevoke) {
  add_nccl("an old kind", of_version(22809));
  EXPECT_EQ(find_nccl("an old kind").error().message, "NCCL is too old: it has version 22809, and 23000 is needed");
}

}  // namespace
}  // namespace everstep::trainer
