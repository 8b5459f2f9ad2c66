#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "scheduler/schedule.h"
#include "trainer/model/model_config.h"
#include "trainer/update/learning_rate.h"
#include "trainer/update/update_record.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Gathers the records of all workers at worker 0 and returns them to everybody: once per window, two hops. The
// capacities are per worker of the plan. Meeting here also tells each worker that all others have finished their
// reduces.
Result<std::vector<UpdateRecord>> exchange_records(Transport& transport, const FrameHeader& header,
                                                   const std::vector<RecordCapacity>& capacities,
                                                   const UpdateRecord& mine, std::chrono::milliseconds timeout);

// The same among the workers from `first` on, as many as there are capacities, at the first of them.
Result<std::vector<UpdateRecord>> exchange_among(int first, Channel channel, Transport& transport,
                                                 const FrameHeader& header,
                                                 const std::vector<RecordCapacity>& capacities,
                                                 const UpdateRecord& mine, std::chrono::milliseconds timeout);

// What each worker's record holds under this schedule: the entries of the stages it owns, as many losses as minibatches
// end on it in a window, a time of each of its chunks, and a hash of each if replicas are compared. `layouts` is per
// stage.
std::vector<RecordCapacity> record_capacities(const scheduler::Schedule& schedule,
                                              const std::vector<StageLayout>& layouts, bool compares_replicas = false);

// What everybody concludes from the records: a pure function, so all conclude the same.
struct UpdateDecision {
  bool finite = true;                 // else the window is skipped
  WindowStop stop = WindowStop::kNo;  // the strongest wish
  bool all_idle = true;               // every worker could save
  std::vector<double> losses;         // of the window's minibatches, in their order
  double loss = 0;                    // mean over the window's minibatches, summed in their order
  double gradient_norm = 0;
  double busy = 0;
  std::vector<Tick> computed;                  // by worker: how long it computed since the exchange before
  std::vector<std::vector<Tick>> stage_times;  // by worker, as in its record
};

UpdateDecision decide_update(const scheduler::Schedule& schedule, const std::vector<StageLayout>& layouts,
                             const std::vector<UpdateRecord>& records);

// The losses of all records in the order of their minibatches.
std::vector<double> losses_in_order(const std::vector<UpdateRecord>& records);

// Summed in their order; 0 if there are none.
double mean_of(const std::vector<double>& losses);

// What the gradient is multiplied by so that its norm is at most `limit` (0: no limit).
double clip_scale(double norm, double limit);

}  // namespace everstep::trainer
