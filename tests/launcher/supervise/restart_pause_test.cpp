#include "launcher/supervise/restart_pause.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;

TEST(RestartPause, DoublesUpToTheLongest) {
  RestartPause pause(500ms, 3s);
  for (const auto wanted : {500ms, 1000ms, 2000ms, 3000ms, 3000ms}) EXPECT_EQ(pause.after_life_of(1s), wanted);
}

TEST(RestartPause, IsShortAgainAfterALongLife) {
  RestartPause pause(500ms, 3s);
  pause.after_life_of(1s);
  pause.after_life_of(1s);
  EXPECT_EQ(pause.after_life_of(60s), 500ms);
}

}  // namespace
}  // namespace everstep::launcher
