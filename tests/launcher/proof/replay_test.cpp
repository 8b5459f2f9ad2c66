#include "launcher/proof/replay.h"

#include <bit>

#include <gmock/gmock.h>

#include "tests/launcher/proof/trained_job.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using storage::LedgerEntry;
using testing::AllOf;
using testing::HasSubstr;
using trainer::StageState;

// What a replay says of a job with these untruths.
std::string said(const Untruths& untruths) {
  const TemporaryDirectory directory;
  const auto report = TrainedJob(directory.path(), untruths).replayed();
  return report ? replay_text(*report) : "failed: " + report.error().line();
}

class HonestJob : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  TrainedJob job_{directory_.path(), {}};
};

TEST_F(HonestJob, ReplaysToEqualBits) {
  const auto report = job_.replayed();
  ASSERT_TRUE(report.ok()) << report.error().line();
  EXPECT_EQ(report->difference, std::nullopt);
  EXPECT_EQ(replay_text(*report), "from step 0 to step 6: 6 windows, 24 losses, 3 checkpoints: all bits equal");
  EXPECT_EQ(to_text(replay_json(*report), 0),
            R"({"good":true,"exact":true,"from":0,"to":24,"windows":6,"losses":24,"checkpoints":3,"difference":null})");
}

TEST_F(HonestJob, IsReplayedFromWhereToWhereTheTextSays) {
  struct Case {
    ReplayRequest request;
    const char* text;
  };
  const Case all[] = {
      {{.to_step = {}, .from_step = 3, .data = {}, .provenance = {}},
       "from step 2 to step 6: 4 windows, 16 losses, 2 checkpoints: all bits equal"},
      {{.to_step = {}, .from_step = 5, .data = {}, .provenance = {}},
       "from step 3 and 2 minibatches to step 6: 3 windows, 10 losses, 1 checkpoint: all bits equal"},
      {{.to_step = 5, .from_step = {}, .data = {}, .provenance = {}},
       "from step 0 to step 3 and 2 minibatches: 3 windows, 14 losses, 2 checkpoints: all bits equal"},
      {{.to_step = 4, .from_step = 3, .data = {}, .provenance = {}},
       "from step 2 to step 3 and 2 minibatches: 1 window, 6 losses, 1 checkpoint: all bits equal"},
  };
  for (const Case& one : all) {
    const auto report = job_.replayed(one.request);
    ASSERT_TRUE(report.ok()) << report.error().line();
    EXPECT_EQ(replay_text(*report), one.text);
  }
}

TEST_F(HonestJob, IsNotReplayedIfThereIsNothingToCompare) {
  struct Case {
    std::int64_t from;
    std::optional<std::int64_t> to;
    const char* place;
  };
  for (const Case& one : {Case{6, {}, "step 6"}, Case{100, 100, "step 6"}, Case{3, 3, "step 2"},
                          Case{5, 4, "step 3 and 2 minibatches"}}) {
    const auto report = job_.replayed({.to_step = one.to, .from_step = one.from, .data = {}, .provenance = {}});
    ASSERT_FALSE(report.ok()) << replay_text(*report);
    EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(report.error().message,
                HasSubstr("there is nothing to compare: the replay would start and end at " + std::string(one.place)));
  }
  EXPECT_EQ(job_.replayed({.to_step = 1, .from_step = {}, .data = {}, .provenance = {}}).error().code,
            ErrorCode::kNotFound);
}

// The checkpoint at step 3 and 2 minibatches lies behind the sums that step 4's provisional weights are made of.
TEST(ReplayOnProvisionalWeights, StartsWhereThereAreThoseThatItNeeds) {
  const TemporaryDirectory directory;
  TrainedJob job(directory.path(), {.provisional = true});
  EXPECT_EQ(replay_text(*job.replayed()), "from step 0 to step 6: 6 windows, 24 losses, 3 checkpoints: all bits equal");
  for (const std::int64_t step : {2, 5}) {
    const auto report = job.replayed({.to_step = {}, .from_step = step, .data = {}, .provenance = {}});
    ASSERT_TRUE(report.ok()) << report.error().line();
    EXPECT_EQ(replay_text(*report), "from step 2 to step 6: 4 windows, 16 losses, 2 checkpoints: all bits equal");
  }
}

TEST(ReplayOnProvisionalWeights, IsRefusedWhereNoCheckpointHasThem) {
  const TemporaryDirectory directory;
  TrainedJob job(directory.path(), {.provisional = true, .keeps_provisional = false});
  const auto report = job.replayed({.to_step = {}, .from_step = 5, .data = {}, .provenance = {}});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message,
            "no checkpoint of step 5 or before has the weights that the window behind it began on");
  EXPECT_EQ(job.replayed()->difference, std::nullopt) << "from the beginning it can be replayed";
}

TEST(ReplayOnProvisionalWeights, ComparesThem) {
  const auto flip = [](Position position, const StageState& state) {
    if (position.value == 8) state.provisional.as<std::uint8_t>()[0] ^= 1;
  };
  EXPECT_THAT(said({.state = flip, .provisional = true}),
              HasSubstr("all equal, then checkpoint g1-p8-00000abc, block 1, provisional, "));
}

TEST(ReplayOnProvisionalWeights, FindsAWindowThatIsSaidToHaveHadNone) {
  const auto hide = [](LedgerEntry& entry) {
    if (entry.window == 4) entry.provisional = false;
  };
  EXPECT_THAT(said({.entry = hide, .provisional = true}), HasSubstr("all equal, then the loss of window 4"));
}

TEST(Replay, FindsAFlippedBitOfALoss) {
  const auto flip = [](LedgerEntry& entry) {
    if (entry.window != 4) return;
    entry.losses[2] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(entry.losses[2]) ^ 1);
  };
  EXPECT_THAT(
      said({.entry = flip}),
      AllOf(HasSubstr("4 windows, 16 losses, 2 checkpoints: all equal, then the loss of window 4, minibatch 2: "),
            HasSubstr(" was committed, ")));
}

TEST(Replay, TellsOfAnotherDeviceIfBitsDiffer) {
  const TemporaryDirectory directory;
  TrainedJob job(directory.path(), {.entry = [](LedgerEntry& entry) { entry.losses[0] += 1; }});
  const auto hint_on = [&](const storage::Settings& provenance) {
    return job.replayed({.to_step = {}, .from_step = {}, .data = {}, .provenance = provenance})->hint;
  };
  EXPECT_EQ(hint_on({{"everstep", "test"}}), "");
  EXPECT_EQ(hint_on({{"device", "cuda"}, {"device-name", "H100"}, {"everstep", "test"}}),
            "other kernels may give other bits: device was cpu and is cuda here");
}

TEST(Replay, FindsAFlippedBitOfStateWhoseDigestIsRight) {
  struct Case {
    trainer::Buffer StageState::*buffer;
    std::int64_t position;
    const char* place;
  };
  for (const Case& one : {Case{&StageState::weights, 8, "checkpoint g1-p8-00000abc, block 1, weights, "},
                          Case{&StageState::weights, 24, "checkpoint g1-p24-00000abc, block 1, weights, "},
                          Case{&StageState::first_moment, 14, "p14-00000abc, block 1, optimizer, first_moment/"},
                          Case{&StageState::second_moment, 24, "p24-00000abc, block 1, optimizer, second_moment/"},
                          Case{&StageState::gradients, 14, "p14-00000abc, block 1, gradients, "}}) {
    const auto flip = [&](Position position, const StageState& state) {
      if (position.value == one.position) (state.*one.buffer).as<std::uint8_t>()[0] ^= 1;
    };
    EXPECT_THAT(said({.state = flip}), AllOf(HasSubstr("all equal, then "), HasSubstr(one.place), HasSubstr("[0]: ")));
  }
}

TEST(Replay, AcceptsASkipOfWhatIsNotFinite) {
  EXPECT_THAT(said({.poisoned = {9}}), HasSubstr("6 windows, 24 losses, 3 checkpoints: all bits equal"));
}

TEST(Replay, FindsAHealthyUpdateThatWasSkipped) {
  EXPECT_THAT(
      said({.left_out = {4}}),
      HasSubstr("all equal, then the update of window 4 was skipped, but in the replay its gradient is finite"));
}

TEST(Replay, LeavesOutWhatWasLeftOut) {
  for (const int position : {9, 12, 13, 23}) {
    EXPECT_THAT(said({.poisoned = {position}, .not_run = {position}}),
                HasSubstr("6 windows, 24 losses, 3 checkpoints: all bits equal"))
        << position;
  }
}

TEST(Replay, FindsWhatWasLeftOutWithoutAWord) {
  const auto hide = [](LedgerEntry& entry) { entry.left_out.clear(); };
  EXPECT_THAT(said({.not_run = {9}, .entry = hide}), HasSubstr("then the loss of window 2, minibatch 1"));
}

TEST(Replay, FindsWhatIsSaidToBeLeftOut) {
  const auto lie = [](LedgerEntry& entry) {
    if (entry.window != 4) return;
    entry.left_out = {1};
    entry.losses[1] = 0;
  };
  EXPECT_THAT(said({.entry = lie}), HasSubstr("all equal, then the loss of window 5, minibatch 0"));
}

TEST(Replay, AcceptsASkipOfWhatWasAboveTheLimitThatTheLedgerNames) {
  const auto limit = [](double norm) {
    return [norm](LedgerEntry& entry) { entry.norm_limit = entry.skipped ? norm : 0; };
  };
  EXPECT_THAT(said({.left_out = {4}, .entry = limit(1e-9)}), HasSubstr("all bits equal"));
  EXPECT_THAT(said({.left_out = {4}, .entry = limit(1e9)}),
              HasSubstr("the update of window 4 was skipped because its gradient's norm was above 1e+09, but"));
}

TEST(Replay, FindsASkippedUpdateThatIsSaidToBeApplied) {
  const auto hide = [](LedgerEntry& entry) { entry.skipped = false; };
  EXPECT_THAT(said({.poisoned = {17}, .entry = hide}),
              HasSubstr("the update of window 4 was applied, but in the replay its gradient is not finite"));
}

TEST(Replay, FindsAnAppliedUpdateThatIsSaidToBeSkipped) {
  const auto lie = [](LedgerEntry& entry) { entry.skipped = entry.window == 4; };
  EXPECT_THAT(said({.entry = lie}), HasSubstr("the update of window 4 was skipped, but in the replay"));
}

TEST(Replay, RefusesAnEntryWhosePlanIsNone) {
  const auto lie = [](LedgerEntry& entry) { entry.plan = "by hand"; };
  EXPECT_THAT(said({.entry = lie}), AllOf(HasSubstr("failed: "), HasSubstr("'by hand' is no plan")));
}

TEST(Replay, ComparesFloatSumsWithinATolerance) {
  const auto flip = [](std::uint32_t bits) {
    return [bits](Position, const StageState& state) { state.weights.as<std::uint32_t>()[0] ^= bits; };
  };
  EXPECT_THAT(said({.state = flip(1), .reproducible = false}),
              HasSubstr("from step 0 to step 6: 6 windows, 24 losses, 3 checkpoints: equal within 1e-04 (losses)"));
  EXPECT_THAT(said({.state = flip(1U << 30), .reproducible = false}), HasSubstr("g1-p8-00000abc, block 1, weights"));
}

}  // namespace
}  // namespace everstep::launcher
