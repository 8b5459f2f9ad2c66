#pragma once

#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "scheduler/timeline.h"

// What the tests of drawings share.
namespace everstep::scheduler {

struct Drawn {
  Schedule schedule;
  Timeline timeline;
};

inline Drawn draw(const ScheduleRequest& request, Tick forward = 1, Tick backward = 2, Tick update = 1) {
  auto schedule = make_schedule(request);
  EXPECT_TRUE(schedule.ok()) << schedule.error();
  Timeline timeline =
      time_schedule(*schedule, TimingModel::uniform(schedule->placement.stages(), forward, backward, update));
  return {*std::move(schedule), std::move(timeline)};
}

}  // namespace everstep::scheduler
