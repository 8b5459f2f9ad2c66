#pragma once

#include <csignal>

#include <gmock/gmock.h>

#include "tests/launcher/supervise/elastic_job.h"

namespace everstep::launcher {

// How jobs on devices go on, by whatever way their tensors travel: for tests of a job that has started.
class DeviceJobEnds : public ElasticJob {
 protected:
  // The worker gets the signal, and the job goes on with that many.
  void expect_others_go_on(pid_t worker, int signal, int workers) {
    const int before = generation();
    ASSERT_GT(worker, 0) << "no process";
    ASSERT_EQ(::kill(worker, signal), 0);
    ASSERT_TRUE(trains_with(workers, before));
    ASSERT_TRUE(goes_on());
  }

  void expect_good_end() {
    expect_stop();
    expect_proofs();
  }

  // `more` is what `everstep train` is told when it goes on from the checkpoints alone.
  void expect_goes_on_when_all_is_lost(Words more) {
    train().signal(SIGKILL);
    train().wait(std::chrono::seconds(0));
    expect_nobody_left();
    more.insert(more.begin(), "--resume");
    more.push_back("--steps=" + std::to_string(step() + 30));
    start(more, "second");
    expect_end();
    expect_proofs();
  }
};

}  // namespace everstep::launcher
