#include "trainer/nccl/nccl_api.h"

#include <iostream>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

#ifdef EVERSTEP_CUDA
TEST(NcclApi, ReachesTheRealNccl) {
  const Result<NcclApi> api = real_nccl_api();
  ASSERT_TRUE(api) << api.error();
  std::cout << "NCCL " << api->get_version() << '\n';
  EXPECT_GE(api->get_version(), 23000);
}
#else
TEST(NcclApi, SaysThatThisBuildHasNone) {
  const Result<NcclApi> api = real_nccl_api();
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().line(), "this build has no NCCL (hint: configure with the preset cuda, or train on the CPU)");
}
#endif

}  // namespace
}  // namespace everstep::trainer
