#include "launcher/supervise/elastic_supervisor.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

TEST(WorkerName, TellsWorkersOfTwoHostsApart) {
  EXPECT_EQ(worker_name(0), "w0");
  EXPECT_EQ(worker_name(0, "host-b-"), "host-b-w0");
}

}  // namespace
}  // namespace everstep::launcher
