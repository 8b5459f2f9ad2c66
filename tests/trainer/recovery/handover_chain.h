#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/recovery/trained_state.h"
#include "trainer/loop/train_loop.h"
#include "trainer/recovery/state_transfer.h"

namespace everstep::trainer {

// How a generation of a chain ends.
struct TestStop {
  enum class Where : std::uint8_t {
    kNowhere,     // after all steps
    kWindowEnd,   // the last worker wishes it when it has made update `number` of training
    kSuperRound,  // promises are asked for as soon as a worker has started super-round `number` of the run; −1: before
    kBrokenOff,   // worker 0 fails in super-round `number`
  };

  Where where = Where::kNowhere;
  std::int64_t number = 0;
  WindowStop how = WindowStop::kHandOver;  // kWindowEnd
  bool and_at_window_end = false;  // kSuperRound: at the same time everybody also wishes a stop at a window's end
};

inline TestStop after_update(std::int64_t number) { return {TestStop::Where::kWindowEnd, number}; }
// The last super-round is the one after the highest that was promised.
inline TestStop after_round(std::int64_t number) { return {TestStop::Where::kSuperRound, number - 1}; }
inline TestStop broken_off_in(std::int64_t round) { return {TestStop::Where::kBrokenOff, round}; }

struct TestGeneration {
  scheduler::ScheduleKind kind = scheduler::ScheduleKind::kOneFOneB;
  int depth = 1;
  int width = 1;
  std::vector<int> workers;  // their names, by place in the plan
  std::vector<int> donors;   // workers of the generation before that only hand over; all others of it are gone
  TestStop stop;
  int pipelines = 0;  // in clockwork; 0: as many as usual
  int lag = 0;
  int provisional = 0;
};

// Generations that follow each other, each a real train() on threads that starts from what the one before left in the
// memory of its workers.
class HandoverChain {
 public:
  // Of the options all but schedule, cuts, resume and generation count.
  explicit HandoverChain(TrainOptions options);

  // Runs the next generation. After an error the state is what it was: another generation may follow from there.
  Result<RunEnd> run(const TestGeneration& next);

  // What the change would be. `next.donors` may be anybody.
  TransferRequest change_to(const TestGeneration& next) const;

  // What the last generation left, and how it came to be.
  Result<TrainedState> state() const;
  Position position() const;
  bool is_inside_window() const { return position().value % options_.schedule.window != 0; }
  std::vector<WindowHistory> history() const;  // handed to a sink, or still with the workers
  const std::vector<StepReport>& steps() const { return steps_; }
  const std::vector<int>& workers() const { return last_.workers; }
  const TrainOptions& options() const { return options_; }
  std::int64_t received_bytes() const { return received_bytes_; }  // by the last generation, from other workers

  // By the generation's number, for references.
  const std::map<std::int64_t, scheduler::Plan>& plans() const { return plans_; }

  // Wrong turns, to prove that they would be noticed.
  std::function<void(MovedState&)> change_moved;

  std::set<std::int64_t> poisoned;  // positions whose gradients are not finite

  // The last word on what a worker (its number) is given; called by the threads of all workers.
  std::function<void(int number, TrainOptions&, TrainHooks&)> change_run;

 private:
  class Run;

  TrainOptions options_under(const TestGeneration& next) const;

  TrainOptions options_;
  std::unique_ptr<DataSource> data_;
  Generation generation_;
  TestGeneration last_;  // that ended in order
  std::map<int, EndState> end_states_;
  std::vector<WindowHistory> saved_;
  std::vector<StepReport> steps_;
  std::map<std::int64_t, scheduler::Plan> plans_;
  std::int64_t received_bytes_ = 0;
};

// Options for chains: a model of twelve blocks, fixed-point sums, clipping and a learning rate that changes.
TrainOptions chain_options(int window, std::int64_t steps);

// Re-runs what the chain's history tells in one process, and compares every bit: losses, norms, positions, weights,
// moments, gradients inside the window. Empty, or the first difference in words.
std::string difference_from_reference(const HandoverChain& chain);

// The same against the history of a job that one worker alone ran without interruption: for synchronous plans.
std::string difference_from_undisturbed(const HandoverChain& chain);

// The same against a history that a test has changed.
std::string difference_from_history(const HandoverChain& chain, const std::vector<HistoryEntry>& entries);
std::vector<HistoryEntry> history_entries(const HandoverChain& chain);

}  // namespace everstep::trainer
