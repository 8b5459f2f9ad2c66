#pragma once

#include <string>

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

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace everstep::scheduler
