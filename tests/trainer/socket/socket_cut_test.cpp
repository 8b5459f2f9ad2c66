#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "launcher/rehearse/chaos/far_host.h"
#include "tests/temporary_directory.h"
#include "tests/trainer/socket/mortal_work.h"
#include "tests/trainer/socket/worker_processes.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

// No kernel tells of it: what is sent there goes out, and nothing comes back. All workers of a host are lost with it,
// also those that nobody waits for.
TEST(SocketCut, AHostThatIsCutOffIsSeenWithinThreeSeconds) {
  const TemporaryDirectory directory;
  const auto far = launcher::chaos::FarHost::start(directory.file("far-host.log"));
  ASSERT_TRUE(far) << far.error().line();
  const WorkerPlace here{(*far)->near_address()};
  const WorkerPlace there{(*far)->far_address(), (*far)->pid()};
  WorkerProcesses workers(Wire::kTls, {here, there, there}, [](PeerConnection& connection, const auto& ready) {
    std::string report = wait_for_the_last(connection, ready);
    while (connection.transport->worker() == 0 && connection.news->look_for_dead().size() < 2) {
      std::this_thread::sleep_for(1ms);
    }
    return report + " all by " + std::to_string(now_us());
  });
  workers.wait_until_ready();
  std::this_thread::sleep_for(200ms);  // until all that was written has been acknowledged
  const std::int64_t cut = now_us();
  ASSERT_TRUE((*far)->cut(launcher::chaos::FarHost::Cut::kPeers));
  const std::string report = workers.finish(0);
  constexpr std::string_view kAllBy = " all by ";
  const std::int64_t elapsed = std::stoll(report.substr(report.find(kAllBy) + kAllBy.size())) - cut;
  std::cout << "both deaths were seen after " << elapsed << " us\n";
  EXPECT_LT(elapsed, 3'000'000) << report;
  EXPECT_TRUE((*far)->heal()) << "lines that cannot be closed keep that network for a minute";
}

}  // namespace
}  // namespace everstep::trainer
