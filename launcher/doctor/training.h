#pragma once

#include <string>

#include "base/result.h"
#include "launcher/doctor/judgement.h"
#include "launcher/doctor/place.h"

namespace everstep::launcher::doctor {

// What `everstep train --etcd=none --reproducible` said of a run of measured_model() on all devices of the place.
struct TrainingRun {
  std::filesystem::path directory;  // with checkpoints/ and logs
  double tokens_per_s = 0;
  std::int64_t taken_bytes = 0;
  std::int64_t predicted_bytes = 0;
  std::string schedule;  // of the plan
  int depth = 1;
  int width = 1;
  int workers = 1;
};

// kCancelled: a signal asked us to stop. Logs are in directory/`name`.
Result<TrainingRun> train_once(const Place& place, const std::string& name);

// The last checkpoints of two such runs.
Result<ComparedRuns> compare_runs(const TrainingRun& a, const TrainingRun& b, Streams& streams);

// What the planner says of the run's plan, and what each device takes.
struct Prediction {
  double tokens_per_s = 0;  // if all devices are as fast as the fastest
  std::vector<DeviceTime> devices{};
};

// From an answer to "profile".
Result<Prediction> predict_speed(const Place& place, const TrainingRun& run, const storage::Json& answer);

}  // namespace everstep::launcher::doctor
