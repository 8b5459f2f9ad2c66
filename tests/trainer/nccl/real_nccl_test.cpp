#include <iostream>

#include <gtest/gtest.h>

#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {
namespace {

TEST(RealNccl, AnswersItsVersion) {
  add_nccl("cuda", real_nccl_api);
  const Result<NcclApi> api = find_nccl("cuda");
  ASSERT_TRUE(api) << api.error();
  std::cout << "NCCL " << api->get_version() << '\n';
  EXPECT_GE(api->get_version(), 23000);
}

}  // namespace
}  // namespace everstep::trainer
