#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/launcher/proof/trained_job.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

class ReplayDamage : public testing::Test {
 protected:
  void append_to_manifest(std::size_t checkpoint) const {
    std::ofstream(job_.path_of_manifest(job_.checkpoints()[checkpoint]), std::ios::app) << " ";
  }

  Result<ReplayReport> replayed_to(std::optional<std::int64_t> step) {
    return job_.replayed({.to_step = step, .from_step = {}, .data = {}, .provenance = {}});
  }

  void expect_refused(std::optional<std::int64_t> to_step, const std::string& object) {
    const auto report = replayed_to(to_step);
    ASSERT_FALSE(report.ok()) << replay_text(*report);
    EXPECT_EQ(report.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(report.error().message, HasSubstr(object + " cannot be replayed: "));
  }

  void expect_equal_to(std::int64_t to_step, const std::string& place) {
    const auto report = replayed_to(to_step);
    ASSERT_TRUE(report.ok()) << report.error().line();
    EXPECT_THAT(replay_text(*report), HasSubstr("from step 0 to " + place + ": "));
    EXPECT_THAT(replay_text(*report), HasSubstr("all bits equal"));
  }

  const TemporaryDirectory directory_;
  TrainedJob job_{directory_.path(), {}};
};

TEST_F(ReplayDamage, TakesNothingForAHeadWhoseManifestIsDamaged) {
  append_to_manifest(2);
  expect_refused({}, "g1-p24-00000abc");
  expect_refused(6, "g1-p24-00000abc");
  expect_refused(100, "g1-p24-00000abc");
  expect_equal_to(5, "step 3 and 2 minibatches");
}

TEST_F(ReplayDamage, DoesNotStepOverADamagedCheckpointOnTheWay) {
  append_to_manifest(0);
  expect_refused({}, "g1-p8-00000abc");
  expect_refused(4, "g1-p8-00000abc");
}

TEST_F(ReplayDamage, EndsBeforeADamagedCheckpointIfAsked) {
  append_to_manifest(1);
  expect_refused({}, "g1-p14-00000abc");
  expect_refused(4, "g1-p14-00000abc");
  expect_equal_to(2, "step 2");
  expect_equal_to(3, "step 2");
}

TEST_F(ReplayDamage, TakesNothingForAMissingHead) {
  std::filesystem::remove(job_.path_of_head());
  expect_refused({}, "HEAD");
  expect_refused(6, "HEAD");
  expect_equal_to(2, "step 2");
}

TEST_F(ReplayDamage, TellsOfDamageIfNothingElseIsLeft) {
  for (const std::size_t checkpoint : {0, 1, 2}) append_to_manifest(checkpoint);
  expect_refused({}, "g1-p24-00000abc");
}

}  // namespace
}  // namespace everstep::launcher
