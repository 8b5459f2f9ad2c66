#include "launcher/worker/background_threads.h"

#include <future>

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

// As when one generation ends after the other while the disk hangs: whoever starts the work has other things to do.
TEST(BackgroundThreads, DoNotWaitForEarlierWorkWhenTheNextStarts) {
  std::promise<void> disk_answers;
  std::promise<void> second_ended;
  std::atomic<bool> first_ended{false};
  {
    BackgroundThreads threads;
    threads.start([&] {
      disk_answers.get_future().wait();
      first_ended = true;
    });
    threads.start([&] { second_ended.set_value(); });
    second_ended.get_future().wait();
    EXPECT_FALSE(first_ended);
    disk_answers.set_value();
  }
  EXPECT_TRUE(first_ended) << "waited for at the end";
}

}  // namespace
}  // namespace everstep::launcher
