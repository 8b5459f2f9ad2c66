#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/schedule.h"
#include "trainer/loop/train_loop.h"

namespace everstep::trainer {

// What a run showed to one worker's stages: which weights each pass found in memory. The weights of a stage are one
// number that every update changes, so a number stands for a version.
struct Sighting {
  int stage = 0;
  std::int64_t position = 0;
  bool forward = true;
  float weight = 0;
};

class Sightings {
 public:
  void add(int worker, const Sighting& sighting) {
    const std::lock_guard lock(mutex_);
    by_worker_[worker].push_back(sighting);
  }
  const std::vector<Sighting>& of(int worker) { return by_worker_[worker]; }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<Sighting>> by_worker_;
};

// A stage without arithmetic: each backward adds 1 to the gradient of every element, so that an update's gradient
// counts the minibatches that reached it. A forward of stage s takes s + 1 ticks of the worker's clock, as does
// each half of a backward.
std::unique_ptr<StageCompute> make_counting_stage(const StageRequest& request, int stage, int worker,
                                                  Sightings& sightings, Tick& clock);

// A model for it, one block per stage.
TrainOptions counting_options(scheduler::ScheduleKind kind, int depth, int width, int window, int steps);

// Minibatches that nobody looks at.
std::unique_ptr<DataSource> make_no_data();

}  // namespace everstep::trainer
