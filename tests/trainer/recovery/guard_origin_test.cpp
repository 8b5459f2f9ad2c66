#include <chrono>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoints/memory_checkpoints.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "tests/trainer/recovery/mixing_stage.h"
#include "trainer/threads/thread_transport.h"

// What copies are of before the first update: the origin, in whichever form a run was given it.
namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Fails in a backward, when everybody has begun.
class BrokenStage final : public StageCompute {
 public:
  explicit BrokenStage(const StageRequest& request) : inner_(make_mixing_stage(request)) {}

  void select_weights(WeightSet set) override { inner_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    return inner_->forward(position, std::move(input));
  }
  Result<Buffer> backward_input(Position, Buffer, int) override { return Error{ErrorCode::kInternal, "broken", ""}; }
  Status backward_weights(Position position, int parity) override { return inner_->backward_weights(position, parity); }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return inner_->evaluate(index, std::move(input));
  }
  Noted<bool> take_overflow(int parity) override { return inner_->take_overflow(parity); }

 private:
  std::unique_ptr<StageCompute> inner_;
};

void break_backwards(TrainHooks& hooks) {
  hooks.make_stage = [](const StageRequest& request) { return std::make_unique<BrokenStage>(request); };
}

TEST(CopiesOfTheOrigin, AreOfTheWindowsStartIfTrainingGoesOnInsideIt) {
  HandoverChain chain(chain_options(26, 4));
  ASSERT_TRUE(chain.run({ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_update(1)}));
  const TrainedState at_start = chain.state().value();
  ASSERT_EQ(at_start.position, Position{52});
  ASSERT_TRUE(chain.run({ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(5)}));
  ASSERT_EQ(chain.position(), Position{64});

  std::vector<StateCopies> copies(3);
  chain.change_run = [&](int number, TrainOptions& options, TrainHooks& hooks) {
    hooks.copies = &copies[static_cast<std::size_t>(number)];
    options.guards = {{1}, {2}, {0}};
    break_backwards(hooks);
  };
  ASSERT_FALSE(chain.run({ScheduleKind::kOneFOneB, 3, 1, {1, 2, 3}, {0}, {}}));
  std::vector<EndState> states;
  for (const StateCopies& one : copies) {
    const auto copied = one.at({2});
    ASSERT_NE(copied, nullptr);
    EXPECT_EQ(copied->resume.position, Position{52});
    EXPECT_THAT(copied->resume.losses, IsEmpty());
    ASSERT_EQ(copied->resume.history.size(), 2U) << "nothing of the window itself";
    EXPECT_EQ(copied->resume.history.back().window, 1);
    ASSERT_TRUE(copied->complete.owned);
    states.push_back({copied->resume, copied->owned});
  }
  EXPECT_EQ(difference_between(at_start, joined(states, chain.options().model).value()), "");
}

TrainOptions two_under_amdp() {
  TrainOptions options = chain_options(12, 4);
  options.schedule.kind = ScheduleKind::kAmdp;
  options.schedule.depth = 2;
  options.cuts = {0, 6, 12};
  return options;
}

// Two workers under AMDP, with hooks of the test's.
Status run_both(const TrainOptions& options, const std::function<void(int, TrainHooks&)>& add_hooks) {
  auto transports = make_thread_transports(2);
  const auto data = make_no_minibatches();
  std::vector<Status> ended(2);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      TrainHooks hooks;
      hooks.now = [] { return Tick{0}; };
      add_mixing_hooks(options.model, hooks);
      add_hooks(worker, hooks);
      const auto result = train(options, *data, *transports[worker], hooks);
      ended[worker] = result ? transports[worker]->close(std::chrono::seconds(10)) : Status(result.error());
      transports[worker].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended[0] ? ended[1] : ended[0];
}

TEST(CopiesOfTheOrigin, AreOfTheNewestWeightsIfALiveCheckpointGoesOn) {
  TrainOptions options = two_under_amdp();
  options.checkpoints = {2, 0, false};
  MemoryCheckpoints checkpoints(options);
  ASSERT_TRUE(run_both(options, [&](int worker, TrainHooks& hooks) { checkpoints.save_here(worker, hooks); }));
  ASSERT_FALSE(checkpoints.complete().empty());
  MemoryCheckpoint live = checkpoints.complete().front();
  ASSERT_EQ(live.kind, CutKind::kLive);
  ASSERT_EQ(live.version, Version{2});

  std::vector<StateCopies> copies(2);
  TrainOptions guarded = resumed(options, live, true);
  guarded.guards = {{1}, {0}};
  const Status ended = run_both(guarded, [&](int worker, TrainHooks& hooks) {
    hooks.copies = &copies[static_cast<std::size_t>(worker)];
    restore_from(live, options, hooks);
    break_backwards(hooks);
  });
  ASSERT_FALSE(ended);
  MemoryCheckpoints from_copies(options);
  for (int worker = 0; worker < 2; ++worker) {
    const auto copied = copies[static_cast<std::size_t>(worker)].at({2});
    ASSERT_NE(copied, nullptr);
    EXPECT_FALSE(copied->resume.continues_live);
    StagedCut cut;
    cut.position = copied->resume.position;
    cut.version = copied->resume.version;
    cut.applied = copied->resume.applied;
    cut.stages = copied->owned;
    TrainHooks hooks;
    from_copies.save_here(worker, hooks);
    hooks.checkpoints->save(cut);
  }
  std::erase_if(live.tensors, [](const auto& tensor) {
    return tensor.first.kind == static_cast<int>(storage::StateKind::kPrevious);
  });
  EXPECT_EQ(difference_between(live, from_copies.complete().front()), "");
}

TEST(Guards, ThatCannotGuardAreRefused) {
  const auto refusal = [](std::vector<std::vector<int>> guards, StateCopies* copies) {
    TrainOptions options = two_under_amdp();
    options.guards = std::move(guards);
    const Status ended = run_both(options, [&](int, TrainHooks& hooks) { hooks.copies = copies; });
    return ended ? "" : ended.error().message;
  };
  StateCopies copies;
  EXPECT_THAT(refusal({{1}}, &copies), HasSubstr("1 stages instead of 2"));
  EXPECT_THAT(refusal({{1}, {1}}, &copies), HasSubstr("worker 1 cannot guard stage 1")) << "it owns it";
  EXPECT_THAT(refusal({{2}, {0}}, &copies), HasSubstr("worker 2 cannot guard stage 0")) << "there is none";
  EXPECT_THAT(refusal({{1, 1}, {0}}, &copies), HasSubstr("worker 1 cannot guard stage 0")) << "it is named twice";
  EXPECT_THAT(refusal({{1}, {0}}, nullptr), HasSubstr("guards without a place for their copies"));
}

}  // namespace
}  // namespace everstep::trainer
