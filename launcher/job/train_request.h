#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "launcher/job/checkpoint_request.h"
#include "launcher/job/emulation.h"
#include "scheduler/planner.h"
#include "trainer/data/open_data.h"
#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

inline constexpr int kMostLocalWorkers = 128;

// What to use with so many workers, where the planner's choice is not wanted.
struct ForcedShape {
  int workers = 0;
  int depth = 1;
  int width = 1;

  bool operator==(const ForcedShape&) const = default;
};

// All that `everstep train` was asked for. The supervisor and every worker read the same one from the same options.
struct TrainRequest {
  trainer::TrainOptions options;             // as far as they do not follow from the plan or the lineage
  std::optional<trainer::DataOptions> data;  // nothing: emulated, on no data
  std::optional<Emulation> emulation;
  std::optional<std::int64_t> emulated_link;  // bytes per second; nothing: what there is

  int workers = 1;
  std::string device = "cpu";      // the kind of device that all workers of the job compute on
  std::string transport = "host";  // how tensors travel between devices: see read_transport()
  scheduler::PlanOptions plan;
  std::vector<ForcedShape> shapes;  // by number of workers

  std::optional<CheckpointRequest> checkpoints;  // nothing: none

  std::string output;  // empty: to be chosen
  std::string trace;   // empty: none
  bool json = false;
};

// The options of `everstep train`, under the names used everywhere.
std::vector<OptionSpec> train_options();

// Reads and checks all that can be checked without looking at the data or making a plan. Fills `failure` instead if an
// option does not fit. `host_memory_bytes` is what the workers share unless --memory-gib says what one has.
TrainRequest read_train_request(const Config& config, std::int64_t host_memory_bytes, Outcome& failure);

}  // namespace everstep::launcher
