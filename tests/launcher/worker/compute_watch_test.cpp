#include "launcher/worker/compute_watch.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

using trainer::Mark;
using Work = trainer::DeviceMemory::Work;

constexpr Tick kOneSecond = kTicksPerSecond;
constexpr Tick kLong = 31 * kOneSecond;  // longer than any op may take before one has ended

class TestMark final : public trainer::DeviceMark {
 public:
  bool has_passed() const override { return passed; }
  void wait() const override {}

  bool passed = false;
};

// Does nothing, as long as its test wants.
class TimedStage final : public trainer::StageCompute {
 public:
  TimedStage(Tick& now, Tick length) : now_(now), length_(length) {}

  void select_weights(trainer::WeightSet) override {}
  Result<Output> forward(Position, trainer::Buffer) override {
    now_ += length_;
    return Output{};
  }
  Result<trainer::Buffer> backward_input(Position, trainer::Buffer, int) override {
    now_ += length_;
    return trainer::Buffer{};
  }
  Status backward_weights(Position, int) override { return {}; }
  Result<Output> evaluate(std::int64_t, trainer::Buffer) override { return Output{}; }
  trainer::Noted<bool> take_overflow(int) override { return false; }

 private:
  Tick& now_;
  Tick length_;
};

class Watching : public testing::Test {
 protected:
  std::shared_ptr<TestMark> give(Work kind) {
    auto mark = std::make_shared<TestMark>();
    watch_.device().given(kind, mark);
    return mark;
  }

  bool makes_progress_after(Tick time) {
    now_ += time;
    return watch_.makes_progress();
  }

  Tick now_ = kOneSecond;
  ComputeWatch watch_{[this] { return now_; }, 30 * kOneSecond};
};

TEST_F(Watching, FindsAnOpThatDoesNotEnd) {
  EXPECT_TRUE(makes_progress_after(kLong)) << "nothing is computed";
  watch_.begin(4);
  EXPECT_TRUE(makes_progress_after(29 * kOneSecond));
  EXPECT_FALSE(makes_progress_after(2 * kOneSecond));
  watch_.end();
  EXPECT_TRUE(makes_progress_after(kLong));
  EXPECT_EQ(watch_.reached(), 5);
}

TEST_F(Watching, HasThePatienceOfTwentyOps) {
  const auto stage = watch_.watch(std::make_unique<TimedStage>(now_, 4 * kOneSecond), nullptr);
  EXPECT_TRUE(stage->forward({7}, {}));
  EXPECT_EQ(watch_.reached(), 8);
  EXPECT_EQ(watch_.last_end(), now_);
  watch_.begin();
  EXPECT_TRUE(makes_progress_after(79 * kOneSecond));
  EXPECT_FALSE(makes_progress_after(2 * kOneSecond));
}

TEST_F(Watching, FindsWorkThatADeviceDoesNotEnd) {
  for (const Work kind : {Work::kCompute, Work::kWireCopies, Work::kBulkCopies}) {
    const auto mark = give(kind);
    EXPECT_TRUE(makes_progress_after(29 * kOneSecond));
    EXPECT_FALSE(makes_progress_after(2 * kOneSecond));
    mark->passed = true;
    EXPECT_TRUE(makes_progress_after(0));
  }
}

TEST_F(Watching, TakesNoNoticeOfALongQueueThatMoves) {
  std::vector<std::shared_ptr<TestMark>> marks;
  for (int i = 0; i < 10; ++i) marks.push_back(give(Work::kCompute));
  for (const auto& mark : marks) {
    EXPECT_TRUE(makes_progress_after(20 * kOneSecond));
    mark->passed = true;
  }
  EXPECT_TRUE(makes_progress_after(kLong));
}

TEST_F(Watching, CountsACopyFromWhenAllComputedBeforeItIsThere) {
  const auto computed = give(Work::kCompute);
  const auto copied = give(Work::kBulkCopies);
  EXPECT_TRUE(makes_progress_after(20 * kOneSecond));
  computed->passed = true;
  EXPECT_TRUE(makes_progress_after(20 * kOneSecond));
  EXPECT_TRUE(makes_progress_after(20 * kOneSecond));
  EXPECT_FALSE(makes_progress_after(20 * kOneSecond));
  copied->passed = true;
  EXPECT_TRUE(makes_progress_after(0));
}

// Ops that go on beside it do not hide a copy that is stuck.
TEST_F(Watching, FindsACopyThatIsStuckBesideOpsThatAreNot) {
  give(Work::kWireCopies);
  for (int i = 0; i < 3; ++i) {
    give(Work::kCompute)->passed = true;
    now_ += 10 * kOneSecond;
  }
  EXPECT_FALSE(makes_progress_after(2 * kOneSecond));
}

TEST_F(Watching, ForgetsADeviceThatIsNotUsedAnyMore) {
  give(Work::kCompute);
  EXPECT_FALSE(makes_progress_after(kLong));
  watch_.device().forget();
  EXPECT_TRUE(makes_progress_after(kLong));
}

}  // namespace
}  // namespace everstep::launcher
