#include "launcher/cli/exit_code.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

TEST(ExitCode, FollowsFromWhatToDoAboutAnError) {
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kInvalidArgument)), 78);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kNotFound)), 78);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kUnavailable)), 69);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kDeadlineExceeded)), 69);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kStaleGeneration)), 75);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kCancelled)), 75);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kDataLoss)), 65);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::kInternal)), 70);
}

Outcome load(const Result<int>& result) {
  if (!result) return result.error();
  EVERSTEP_TRY(Status());
  return {};
}

TEST(Outcome, TakesAnErrorAsItIs) {
  EXPECT_EQ(load(1), std::nullopt);
  const Error damaged{ErrorCode::kDataLoss, "block 3 is missing", ""};
  EXPECT_EQ(load(damaged), Failure(damaged, ExitCode::kDamagedCheckpoint));
}

}  // namespace
}  // namespace everstep::launcher
