// Seeds that once found something. What they found has a test of its own in tests/elastic/brain where it was a mistake
// of the brains; these keep the whole.
#include <gtest/gtest.h>

#include "elastic/sim/simulation.h"

namespace everstep::elastic::sim {
namespace {

// All plans were 1F1B when these were found.
void expect_holds(std::uint64_t seed) {
  const SimulationReport report = simulate({.seed = seed, .schedule = scheduler::ScheduleKind::kOneFOneB});
  EXPECT_FALSE(report.violation) << *report.violation;
}

TEST(Found, ALeaderThatRepeatedWhatWasRefusedWithoutReadingAgain) { expect_holds(1066); }

TEST(Found, AHolderThatHadNothingLeft) { expect_holds(1193); }

TEST(Found, AStaleReadThatEndedAllCommits) { expect_holds(311); }

TEST(Found, ACheckpointThatALaterLeaderCommittedASecondTime) { expect_holds(403); }

TEST(Found, ADrainThatWaitedForSomebodyWhoNeverBegan) { expect_holds(519); }

TEST(Found, AnAttemptThatWasConnectedTwice) { expect_holds(5054); }

TEST(Found, ALateAcknowledgementThatTookTheNextOnesAway) { expect_holds(7647); }

TEST(Found, ADonorThatLeftBeforeItHadHandedOver) { expect_holds(33401); }

TEST(Found, AMinibatchThatWasNotLeftOutBecauseAStopHadCutItsWindowInTwo) { expect_holds(19007); }

TEST(Found, ASilenceThatWasTheStoresAndWasHeldAgainstSurvivors) {
  for (const std::uint64_t seed : {700621, 704326, 704714, 705743, 709354}) expect_holds(seed);
}

// Of the oracle: it looks away while the store is not the job's, and an operator went on from what was committed then.
TEST(Found, ACheckpointThatAnOperatorFoundAndTheOracleHadNotSeen) {
  for (const std::uint64_t seed : {803494, 804476}) expect_holds(seed);
}

// Of the simulator: its committer did not look whose HEAD it replaces, as Catalog::commit does.
TEST(Found, ALeaderThatBeganToCommitFromAnOldHead) { expect_holds(872368); }

}  // namespace
}  // namespace everstep::elastic::sim
