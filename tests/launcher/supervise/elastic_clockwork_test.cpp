// Jobs whose workers run clockwork, and what may happen to them.
#include <csignal>
#include <functional>
#include <set>

#include <gmock/gmock.h>

#include "launcher/job/checkpoint_store.h"
#include "scheduler/plan_text.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using testing::Contains;
using testing::IsSupersetOf;

class ElasticClockwork : public ElasticJob {
 protected:
  // In the order in which they came.
  std::vector<std::string> plans() const {
    std::vector<std::string> all;
    for (const GenerationLine& line : generations()) all.push_back(line.plan);
    return all;
  }

  // "5x1": what trained windows that began on provisional weights, by the ledger.
  std::set<std::string> shapes_on_provisional_weights() const {
    const auto store = open_checkpoint_store({path("saves"), "job", ""}, StoreAccess::kExisting);
    if (!store) return {store.error().line()};
    const auto listing = (*store)->catalog().list();
    if (!listing || listing->entries.empty()) return {"no checkpoint"};
    const auto ledger = (*store)->catalog().ledger(listing->entries.front());
    if (!ledger) return {ledger.error().line()};
    std::set<std::string> shapes;
    for (const storage::LedgerSegment& segment : *ledger) {
      for (const storage::LedgerEntry& entry : segment.entries) {
        const auto plan = scheduler::parse_plan_text(entry.plan);
        if (plan && entry.provisional) shapes.insert(std::to_string(plan->depth) + "x" + std::to_string(plan->width));
      }
    }
    return shapes;
  }
};

TEST_F(ElasticClockwork, TrainsEveryNumberOfWorkersAndSurvivesALoss) {
  ASSERT_TRUE(starts(4, {"--schedule=clockwork", "--shapes=3=3x1,4=4x1,5=5x1,6=3x2"}));
  for (const int workers : {5, 6, 3}) {
    const int before = generation();
    scale(workers);
    ASSERT_TRUE(trains_with(workers, before));
    EXPECT_EQ(generations().back().redone, 0);
    ASSERT_TRUE(goes_on());
  }
  scale(4);
  ASSERT_TRUE(trains_with(4, generation()));
  ASSERT_TRUE(goes_on());
  const int before = generation();
  send_signal(worker(1), SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(goes_on());
  expect_stop();
  for (const char* plan : {"clockwork D=4 P=2 W=1", "clockwork D=5 P=1 W=1", "clockwork D=3 P=1 W=2"}) {
    EXPECT_THAT(plans(), Contains(plan));
  }
  expect_proofs();
}

TEST_F(ElasticClockwork, GoesOnFromCutsInsideWindowsAndUnderAnotherSchedule) {
  const std::string window = "--window=16";
  const std::string cuts = "--checkpoint-every=5r";
  ASSERT_TRUE(starts(4, {window, cuts, "--schedule=clockwork", "--shapes=4=4x1,3=3x1", "--redundancy=0"}));
  const int before = generation();
  send_signal(worker(2), SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  EXPECT_EQ(generations().back().origin, "checkpoint");
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
  start({window, cuts, "--schedule=amdp", "--shapes=4=4x1", "--resume"}, "again");
  ASSERT_TRUE(trains_with(4));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

// Workers join, leave and die, the leader too; the ledger tells which windows began on provisional weights.
TEST_F(ElasticClockwork, ReplaysTenChangesOfWorkersThatMakeProvisionalWeights) {
  ASSERT_TRUE(starts(4, {"--provisional=on", "--window=16", "--shapes=2=2x1,3=3x1,4=4x1,5=5x1,6=3x2,7=7x1,8=8x1"}));
  int changes = 0;
  const auto expect_change = [&](int workers, const std::function<void()>& change) {
    const int before = generation();
    change();
    ASSERT_TRUE(trains_with(workers, before));
    ASSERT_TRUE(goes_on(10));
    ++changes;
  };
  for (const int workers : {8, 6, 3, 5, 2, 4}) {
    ASSERT_NO_FATAL_FAILURE(expect_change(workers, [&] { scale(workers); }));
  }
  ASSERT_NO_FATAL_FAILURE(expect_change(3, [&] { send_signal(worker(leader()), SIGKILL); }));
  ASSERT_NO_FATAL_FAILURE(expect_change(2, [&] { send_signal(worker(leader()), SIGTERM); }));
  RunningProgram* another = nullptr;
  ASSERT_NO_FATAL_FAILURE(expect_change(3, [&] { another = &add_worker("another"); }));
  ASSERT_NO_FATAL_FAILURE(expect_change(2, [&] { another->signal(SIGKILL); }));
  EXPECT_EQ(changes, 10);
  expect_stop();
  EXPECT_THAT(shapes_on_provisional_weights(), IsSupersetOf({"8x1", "3x2", "5x1", "4x1"}));
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
