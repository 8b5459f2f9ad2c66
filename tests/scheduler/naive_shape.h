#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/schedule.h"

// The shape of a schedule, worked out a second time and as plainly as possible: who holds what, which minibatch goes
// where, which ops must be there.
namespace everstep::scheduler {

// A minibatch as it was dealt: where it stands in a schedule and in the data.
struct DealtMinibatch {
  std::int64_t window = 0;
  int round = 0;
  int group = 0;
  int minibatch = 0;
  std::int64_t position = 0;
};

// Deals the data one by one, as one would deal cards.
std::vector<DealtMinibatch> deal(const ScheduleRequest& request);

// Whether the pipeline is empty when the window starts.
bool naive_starts_drained(const ScheduleRequest& request, std::int64_t window);

// How many rounds of the window may begin before the update of the one before; after how many it can be cut.
int naive_lagging_rounds(const ScheduleRequest& request, std::int64_t window);
int naive_rounds_before_cut(const ScheduleRequest& request, std::int64_t window);

// Where a pipeline has a stage, found by walking along the ring.
int naive_device_of(const ScheduleRequest& request, int pipeline, int stage);
int naive_pipelines(const ScheduleRequest& request);
int naive_stages(const ScheduleRequest& request);

// Devices with the same number synchronise with each other.
int naive_mirror_group_of(const ScheduleRequest& request, int device);

// All (worker, stage) such that the worker holds the stage.
std::set<std::pair<int, int>> naive_chunks(const ScheduleRequest& request);

// Whether the window runs to its end, and the last super-round of each window.
bool naive_completes(const ScheduleRequest& request, std::int64_t window);
std::map<std::int64_t, int> naive_last_rounds(const ScheduleRequest& request);

// How often each op must stand in the list of each worker, whatever the order.
std::map<std::pair<int, std::string>, int> naive_contents(const ScheduleRequest& request);

}  // namespace everstep::scheduler
