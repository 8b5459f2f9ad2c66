#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/guard/guarded_chain.h"
#include "tests/trainer/handover/handover_chain.h"
#include "trainer/worker.h"

// Workers that keep copies wrongly. The checks that the right ones pass must fail for them, or they prove nothing.
namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;

// train() with another kind of worker.
template <typename WrongWorker>
class Careless : public Worker {
 public:
  Careless(const TrainOptions& options, Transport& transport, const TrainHooks& hooks, scheduler::Schedule shape)
      : Worker(options, transport, hooks, std::move(shape)), kept_(*hooks.copies) {}

  static Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                                   const TrainHooks& hooks) {
    auto shape = shape_of(options, transport);
    if (!shape) return shape.error();
    WrongWorker worker(options, transport, hooks, *std::move(shape));
    EVERSTEP_TRY(worker.prepare(data));
    EVERSTEP_TRY(worker.run(options.steps));
    EVERSTEP_TRY(worker.end_copies());
    return worker.result();
  }

 protected:
  StateCopies& kept() const { return kept_; }

 private:
  StateCopies& kept_;
};

class Careful final : public Careless<Careful> {
 public:
  using Careless::Careless;
};

// Says that its copies came, and joins the exchange without them.
class JoinsTheExchangeEarly final : public Careless<JoinsTheExchangeEarly> {
 public:
  using Careless::Careless;

 private:
  Status finish_copies() override {
    kept().guarded_came();
    return {};
  }
};

// Keeps the newest version when the step has already changed it.
class KeepsAfterTheStep final : public Careless<KeepsAfterTheStep> {
 public:
  using Careless::Careless;

  static Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                                   const TrainHooks& hooks) {
    TrainHooks late = hooks;
    late.on_step = [&](const StepReport& report) {
      hooks.copies->keep_newest();
      hooks.on_step(report);
    };
    return Careless::train(options, data, transport, late);
  }

 private:
  void keep_newest_copy() override {}
};

// A generation whose worker 1 dies, with its copies of version 3 and later lost on the way or not.
template <typename WorkerKind>
std::string difference_with(bool copies_are_late, const CallTest& dies) {
  GuardedChain chain(chain_options(14, 6));
  chain.train_with = WorkerKind::train;
  if (copies_are_late) {
    chain.change_transport = [](int name, MortalTransport& transport) {
      if (name != 1) return;
      transport.loses = [](const TransportCall& call) {
        return call.header.kind == FrameKind::kCopy && call.header.window >= 3;
      };
    };
  }
  const Status ran = chain.run({ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, 1, {}, {}, {{1, dies}}});
  if (!ran) return ran.error().message;
  return chain.difference_from_reference();
}

TEST(GuardControls, NoMistakeIsNoDifference) {
  EXPECT_EQ(difference_with<Careful>(false, at_send(FrameKind::kRecord, 4)), "");
  EXPECT_EQ(difference_with<Careful>(false, at_send(FrameKind::kWeights, 3)), "");
  // Copies that never come keep everybody at the exchange before which they are due.
  EXPECT_EQ(difference_with<Careful>(true, at_send(FrameKind::kRecord, 3)), "");
}

TEST(GuardControls, AGuardThatJoinsTheExchangeEarlyIsNoticed) {
  EXPECT_THAT(difference_with<JoinsTheExchangeEarly>(true, at_send(FrameKind::kRecord, 5)),
              HasSubstr("weights of block"));
}

TEST(GuardControls, AnOwnerThatKeepsAVersionAfterTheStepIsNoticed) {
  EXPECT_THAT(difference_with<KeepsAfterTheStep>(false, at_send(FrameKind::kCopy, 4)), HasSubstr("weights of block"));
}

}  // namespace
}  // namespace everstep::trainer
