// NVIDIA's NCCL as it is loaded, on a host without GPUs.
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(RealNccl, AnswersItsVersion) {
  add_nccl("cuda", real_nccl_api);
  const Result<NcclApi> api = find_nccl("cuda");
  ASSERT_TRUE(api) << api.error();
  std::cout << "NCCL " << api->get_version() << '\n';
  EXPECT_GE(api->get_version(), 23000);
}

TEST(RealNccl, IsNotNeededToStart) {
  const Result<NcclApi> none = load_nccl({"/nowhere/libnccl.so.2", "libnowhere.so.2"});
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().line(), AllOf(HasSubstr("NCCL was not found: libnowhere.so.2: "),
                                         HasSubstr("--transport=host needs none"), Not(HasSubstr("\n"))));
}

TEST(RealNccl, IsRefusedIfItIsTooOld) {
  EXPECT_EQ(load_nccl({"/nowhere/libnccl.so.2", EVERSTEP_OLD_NCCL}).error().message,
            "NCCL is too old: it has version 22809, and 23000 is needed");
}

TEST(RealNccl, IsRefusedIfAFunctionIsMissing) {
  EXPECT_EQ(load_nccl({EVERSTEP_NO_NCCL}).error().message,
            "NCCL cannot be used: it has no function ncclGetErrorString");
}

}  // namespace
}  // namespace everstep::trainer
