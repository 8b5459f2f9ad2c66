#include "trainer/recovery/state_copies.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/recovery/mixing_stage.h"
#include "trainer/recovery/owner_state.h"

namespace everstep::trainer {
namespace {

using CopiedVersion = StateCopies::CopiedVersion;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CopyParts kBoth{true, true};
constexpr CopyParts kOwnedOnly{true, false};

// A worker that owns stage 0 and guards stage 1. What it has of a version is filled with the version's number.
class TwoVersions : public testing::Test {
 protected:
  TwoVersions() : model_(mixing_model(2)), owned_{0, layout_of(model_, 0, 2), {}} {
    for (const auto tensor : kOwnerState) {
      const std::size_t bytes = owned_.layout.elements * owner_element_bytes(tensor, model_);
      if (bytes > 0) owned_.state.*tensor = allocate_zeroed(bytes);
    }
    copies_.begin(model_, {{1, layout_of(model_, 2, 4)}});
  }

  static void fill(const StagedStage& stage, std::int64_t version) {
    for (const auto tensor : kOwnerState) {
      const Buffer& buffer = stage.state.*tensor;
      if (!buffer.empty()) std::memset(buffer.data, static_cast<int>(version), buffer.size);
    }
  }

  // As an update does, up to the arrival of the guarded stage.
  const std::vector<StagedStage>& make(std::int64_t version) {
    fill(owned_, version);
    ResumePoint resume;
    resume.version = {version};
    return copies_.add(resume, {owned_});
  }

  void make_and_receive(std::int64_t version) {
    for (const StagedStage& guarded : make(version)) fill(guarded, version);
    copies_.guarded_came();
  }

  // Of every byte of the stage, −1 if they differ.
  static int number_in(const StagedStage& stage) {
    const auto number = std::to_integer<int>(stage.state.weights.data[0]);
    for (const auto tensor : kOwnerState) {
      const auto bytes = (stage.state.*tensor).as<const std::byte>();
      for (const std::byte byte : bytes) {
        if (std::to_integer<int>(byte) != number) return -1;
      }
    }
    return number;
  }

  ModelConfig model_;
  StagedStage owned_;
  StateCopies copies_;
};

TEST_F(TwoVersions, ThereIsNoneBeforeTheOrigin) { EXPECT_THAT(copies_.versions(), IsEmpty()); }

TEST_F(TwoVersions, AGuardedPartCountsWhenItsLastByteCame) {
  make(5);
  EXPECT_THAT(copies_.versions(), ElementsAre(CopiedVersion{Version{5}, kOwnedOnly}));
  copies_.guarded_came();
  EXPECT_THAT(copies_.versions(), ElementsAre(CopiedVersion{Version{5}, kBoth}));
}

TEST_F(TwoVersions, TheVersionBeforeStaysWholeWhileTheNextIsMadeAndReceived) {
  make_and_receive(5);
  copies_.keep_newest();
  fill(owned_, 99);  // a step that is under way
  EXPECT_THAT(copies_.versions(), ElementsAre(CopiedVersion{Version{5}, kBoth}));
  for (const StagedStage& guarded : make(6)) fill(guarded, 98);  // half of it came
  EXPECT_THAT(copies_.versions(), ElementsAre(CopiedVersion{Version{6}, kOwnedOnly}, CopiedVersion{Version{5}, kBoth}));
  const auto before = copies_.at({5});
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(number_in(before->owned[0]), 5);
  EXPECT_EQ(number_in(before->guarded[0]), 5);
}

TEST_F(TwoVersions, ANewVersionTakesThePlaceOfTheOneBeforeTheLast) {
  make_and_receive(5);
  for (std::int64_t version = 6; version < 12; ++version) {
    copies_.keep_newest();
    make_and_receive(version);
    EXPECT_THAT(copies_.versions(),
                ElementsAre(CopiedVersion{Version{version}, kBoth}, CopiedVersion{Version{version - 1}, kBoth}));
    for (const std::int64_t one : {version, version - 1}) {
      EXPECT_EQ(number_in(copies_.at({one})->owned[0]), one);
      EXPECT_EQ(number_in(copies_.at({one})->guarded[0]), one);
    }
    EXPECT_EQ(copies_.at({version - 2}), nullptr);
  }
}

TEST_F(TwoVersions, NoMemoryIsAllocatedOnceThereAreTwo) {
  std::set<std::byte*> owned;
  std::set<std::byte*> guarded;
  make_and_receive(5);
  for (std::int64_t version = 6; version < 12; ++version) {
    copies_.keep_newest();
    make_and_receive(version);
    for (const std::int64_t one : {version, version - 1}) {
      owned.insert(copies_.at({one})->owned[0].state.first_moment.data);
      guarded.insert(copies_.at({one})->guarded[0].state.first_moment.data);
    }
  }
  EXPECT_EQ(owned.size(), 2U) << "what is trained on and one copy";
  EXPECT_EQ(guarded.size(), 2U);
}

TEST_F(TwoVersions, AVersionThatIsNotCompleteIsNeverKeptInThePlaceOfOneThatIs) {
  make_and_receive(5);
  copies_.keep_newest();
  make(6);
  EXPECT_DEATH(copies_.keep_newest(), "not complete");
}

TEST_F(TwoVersions, NoVersionIsOverwrittenBeforeItWasKept) {
  make_and_receive(5);
  EXPECT_DEATH(make(6), "others may need");
}

TEST_F(TwoVersions, NoVersionIsLeftOut) {
  make_and_receive(5);
  copies_.keep_newest();
  EXPECT_DEATH(make(7), "left out");
}

WindowHistory entry(std::int64_t window, int first, int end) {
  WindowHistory made;
  made.window = window;
  made.first = first;
  made.end = end;
  made.generation = {3};
  made.losses.assign(end - first, 0.5);
  return made;
}

TEST(UntoldHistory, TellsEveryWindowOnceInOrderFromTheCommittedOneToTheOrigin) {
  // Windows of ten: committed up to 22, the origin is at 50. Cuts that were not committed and the copy tell both of 3.
  const std::vector<WindowHistory> known{entry(1, 0, 10), entry(2, 0, 2),  entry(2, 2, 10), entry(3, 0, 10),
                                         entry(5, 0, 4),  entry(3, 0, 10), entry(4, 0, 10)};
  EXPECT_THAT(untold_history(known, Position{22}, Position{50}, 10),
              ElementsAre(entry(2, 2, 10), entry(3, 0, 10), entry(4, 0, 10)));
}

// A window that was skipped because its loss is not a number: told twice, it would end all commits.
TEST(UntoldHistory, TellsAWindowOnceWhoseLossIsNotANumber) {
  WindowHistory skipped = entry(3, 0, 10);
  skipped.losses[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(untold_history({skipped, skipped}, Position{0}, Position{50}, 10).size(), 1U);
}

TEST(UntoldHistory, TellsAllOfAWindowThatACommittedCutLiesInside) {
  EXPECT_THAT(untold_history({entry(1, 0, 10), entry(2, 0, 10)}, Position{24}, Position{30}, 10),
              ElementsAre(entry(2, 0, 10)));
}

}  // namespace
}  // namespace everstep::trainer
