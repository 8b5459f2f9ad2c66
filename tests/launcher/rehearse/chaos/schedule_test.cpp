#include "launcher/rehearse/chaos/schedule.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace everstep::launcher::chaos {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kSeeds = 500;

ScheduleOptions everything() {
  ScheduleOptions options;
  options.can_fill_disk = true;
  options.can_slow_disk = true;
  options.can_cut_network = true;
  options.can_limit_memory = true;
  return options;
}

std::string failure_of(const std::string& text) {
  const auto schedule = parse_schedule(text);
  return schedule ? "" : schedule.error().message;
}

TEST(ChaosSchedule, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(make_schedule(seed, everything()), make_schedule(seed, everything()));
  }
  EXPECT_NE(make_schedule(1, everything()).faults, make_schedule(2, everything()).faults);
}

TEST(ChaosSchedule, ComesBackFromItsText) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Schedule schedule = make_schedule(seed, everything());
    const auto again = parse_schedule(to_text(schedule));
    ASSERT_TRUE(again.ok()) << again.error().line() << "\n" << to_text(schedule);
    EXPECT_EQ(*again, schedule) << to_text(schedule);
  }
}

TEST(ChaosSchedule, NeverLeavesTooFewWorkers) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const int workers : {2, 4, 8}) {
      // Nor where some of them cannot be made.
      for (ScheduleOptions options : {everything(), ScheduleOptions{}}) {
        options.workers = workers;
        const Schedule schedule = make_schedule(seed, options);
        for (const int running : running_workers(schedule)) {
          EXPECT_GE(running, kFewestWorkers) << to_text(schedule);
          EXPECT_LE(running, workers + kMostMoreWorkers) << to_text(schedule);
        }
      }
    }
  }
}

TEST(ChaosSchedule, CountsWorkersThatRun) {
  const auto schedule = parse_schedule(
      "workers 4\n1 kill-two pick=0\n2 join count=2\n3 stop-worker pick=1 for=2\n4 kill-leader\n6 scale by=-1\n"
      "7 kill-all count=3\n");
  ASSERT_TRUE(schedule.ok()) << schedule.error().line();
  EXPECT_EQ(running_workers(*schedule), (std::vector<int>{2, 4, 3, 2, 2, 3}));
}

TEST(ChaosSchedule, IsOverInTime) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Schedule schedule = make_schedule(seed, everything());
    EXPECT_LE(schedule.end(), kLongestSchedule) << to_text(schedule);
    EXPECT_GE(schedule.faults.size(), 4U) << to_text(schedule);
  }
}

TEST(ChaosSchedule, DrawsEveryFaultWithinFiftySeeds) {
  constexpr std::uint64_t kSoon = 50;
  std::set<FaultKind> drawn;
  std::set<int> servers;
  std::set<std::pair<JobKind, bool>> plans;
  for (std::uint64_t seed = 0; seed < kSoon; ++seed) {
    const Schedule schedule = make_schedule(seed, everything());
    for (const TimedFault& one : schedule.faults) drawn.insert(one.fault.kind);
    servers.insert(schedule.etcd_servers);
    plans.emplace(schedule.job, schedule.deep);
  }
  for (const FaultForm& form : all_forms()) {
    EXPECT_EQ(drawn.contains(form.kind), form.needs != Needs::kNobody) << form.name;
  }
  EXPECT_EQ(servers, (std::set<int>{1, 3}));
  EXPECT_EQ(plans.size(), 6U);
}

TEST(ChaosSchedule, DrawsStopsShorterAndLongerThanTheLease) {
  bool has_short = false;
  bool has_long = false;
  const milliseconds lease = everything().lease;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const TimedFault& one : make_schedule(seed, everything()).faults) {
      if (one.fault.kind != FaultKind::kStopWorker) continue;
      has_short = has_short || one.fault.lasts < lease;
      has_long = has_long || one.fault.lasts > lease;
    }
  }
  EXPECT_TRUE(has_short);
  EXPECT_TRUE(has_long);
}

TEST(ChaosSchedule, LeavesOutWhatTheMachineCannotDo) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Schedule most = make_schedule(seed, everything());
    std::erase_if(most.faults, [](const TimedFault& one) {
      const Needs needs = form_of(one.fault.kind).needs;
      return needs == Needs::kSmallDisk || needs == Needs::kSlowDisk || needs == Needs::kFarHost ||
             needs == Needs::kNoMemory;
    });
    EXPECT_EQ(make_schedule(seed, {}), most);
  }
}

TEST(ChaosSchedule, TakesTheNumberOfServersThatIsAskedFor) {
  ScheduleOptions options = everything();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    options.etcd_servers = 1;
    const Schedule one = make_schedule(seed, options);
    EXPECT_EQ(one.etcd_servers, 1);
    EXPECT_FALSE(one.has(FaultKind::kEtcdRoll));
    options.etcd_servers = 3;
    EXPECT_EQ(make_schedule(seed, options).etcd_servers, 3);
  }
}

TEST(ChaosSchedule, KnowsFaultsByTheirNames) {
  for (const FaultForm& form : all_forms()) {
    EXPECT_EQ(form_of(form.kind).name, form.name);
    const Fault fault{form.kind, form.picks ? 3 : 0, form.number.empty() ? 0 : 2, milliseconds(form.lasts ? 1250 : 0)};
    const auto again = parse_fault(to_text(fault));
    ASSERT_TRUE(again.ok()) << again.error().line();
    EXPECT_EQ(*again, fault);
  }
}

TEST(ChaosSchedule, KnowsWhetherSomethingHappensBetweenWorkers) {
  const auto needs_network = [](const std::string& fault) {
    return parse_schedule("workers 4\netcd-servers 3\n1 " + fault + "\n").value().needs_network();
  };
  for (const char* fault : {"half-open for=3", "corrupt for=3", "delay for=3", "cut-off for=3", "etcd-split for=3"}) {
    EXPECT_TRUE(needs_network(fault)) << fault;
  }
  EXPECT_FALSE(needs_network("kill-leader"));
  EXPECT_FALSE(needs_network("etcd-away for=3"));
}

TEST(ChaosSchedule, IsReadByPeople) {
  const auto schedule = parse_schedule("# mine\n\nworkers 3\n  0.5 kill-leader   # at once\n1 scale by=-1\n");
  ASSERT_TRUE(schedule.ok()) << schedule.error().line();
  EXPECT_EQ(schedule->workers, 3);
  ASSERT_EQ(schedule->faults.size(), 2U);
  EXPECT_EQ(schedule->faults[0].at, milliseconds(500));
  EXPECT_EQ(schedule->faults[1].fault.number, -1);
}

TEST(ChaosSchedule, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(failure_of("seed 1\n1 kill-king\n"), "line 2: 'kill-king': there is no such fault");
  EXPECT_EQ(failure_of("1 kill-leader pick=1\n"), "line 1: 'pick=1': is no value of kill-leader");
  EXPECT_EQ(failure_of("1 stop-worker pick=1\n"), "line 1: 'stop-worker': has values that are missing or doubled");
  EXPECT_EQ(failure_of("1 stop-leader for=x\n"), "line 1: 'x': expected seconds from 0 to 3600");
  EXPECT_EQ(failure_of("1 join count=17\n"), "line 1: 'count=17': expected an integer from -16 to 16");
  EXPECT_EQ(failure_of("2 kill-leader\n1 kill-leader\n"), "line 2: '1': is before the line above");
  EXPECT_EQ(failure_of("soon kill-leader\n"), "line 1: 'soon': expected seconds from 0 to 3600");
  EXPECT_EQ(failure_of("etcd-servers 2\n"), "line 1: '2': expected 1 or 3 etcd servers");
  EXPECT_EQ(failure_of("kind fast\n"), "line 1: 'fast': expected clockwork, amdp or synchronous");
}

}  // namespace
}  // namespace everstep::launcher::chaos
