#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"
#include "tests/trainer/recovery/guarded_chain.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "trainer/socket/socket_connector.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

constexpr std::chrono::seconds kPatience{60};

std::unique_ptr<Transport> connect(PeerConnector& connector, int worker, const std::vector<std::string>& addresses) {
  PeerRoster roster{.worker = worker, .members = {}};
  for (const std::string& address : addresses) {
    roster.members.push_back({WorkerId{{1, roster.members.size()}}, address});
  }
  return std::move(connector.connect(roster, kPatience).connection.value().transport);
}

// All workers in this process, with real sockets between them.
std::vector<std::unique_ptr<Transport>> make_socket_transports(int workers) {
  const TemporaryDirectory directory;
  SocketOptions options;
  options.runtime_directory = directory.path();
  std::vector<std::unique_ptr<PeerConnector>> connectors;
  std::vector<std::string> addresses;
  for (int worker = 0; worker < workers; ++worker) {
    connectors.push_back(listen_for_peers(options).value());
    addresses.push_back(connectors.back()->address());
  }
  std::vector<std::unique_ptr<Transport>> transports(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] { transports[worker] = connect(*connectors[worker], worker, addresses); });
  }
  for (std::thread& thread : threads) thread.join();
  return transports;
}

// Copies over real connections, a worker dying at any call, and another generation over new ones.
TEST(GuardOverSockets, CoversADeathAtAnyPoint) {
  const GuardedGeneration whole{ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}};
  const TrainOptions options = chain_options(12, 4);
  GuardedChain undisturbed(options);
  undisturbed.make_transports = make_socket_transports;
  ASSERT_TRUE(undisturbed.run(whole));
  ASSERT_EQ(undisturbed.difference_from_reference(), "");
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    GuardedChain chain(options);
    chain.make_transports = make_socket_transports;
    const GuardedGeneration next = with_a_death(whole, undisturbed, seed);
    const std::vector<int> left = left_of(next);
    const Status ran = chain.run(next);
    ASSERT_TRUE(ran) << ran.error();
    EXPECT_GE(chain.version().value, chain.newest_update() - 1);
    ASSERT_EQ(chain.difference_from_reference(), "");
    const Status went_on = chain.run({ScheduleKind::kOneFOneB, 2, 1, {left[2], left[0]}, 1, {left[1]}});
    ASSERT_TRUE(went_on) << went_on.error();
    EXPECT_EQ(chain.version(), Version{4});
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
}

// A death in one of two groups: the other one goes on over real connections, and what it kept is not run again.
TEST(GuardOverSockets, AGroupWithoutALossKeepsItsSums) {
  const GuardedGeneration whole{ScheduleKind::kAmdp, 2, 2, {0, 1, 2, 3}};
  const TrainOptions options = chain_options(24, 4);
  GuardedChain undisturbed(options);
  ASSERT_TRUE(undisturbed.run(whole));
  int kept = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    GuardedChain chain(options);
    chain.make_transports = make_socket_transports;
    const GuardedGeneration last = with_a_death(whole, undisturbed, seed);
    const Status ran = chain.run(last);
    ASSERT_TRUE(ran) << ran.error();
    const std::vector<WindowHistory> ranges = chain.ranges_in_sums();
    kept += ranges.empty() ? 0 : 1;
    const Status went_on = chain.run({ScheduleKind::kOneFOneB, 3, 1, left_of(last)});
    ASSERT_TRUE(went_on) << went_on.error();
    EXPECT_EQ(chain.version(), Version{4});
    EXPECT_EQ(run_again(chain, ranges), "");
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
  EXPECT_GT(kept, 0);
}

}  // namespace
}  // namespace everstep::trainer
