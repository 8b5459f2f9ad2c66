#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/tick.h"
#include "launcher/worker/control_message.h"

namespace everstep::launcher {

// An update of the job, once for each time that it was made.
struct StepMark {
  Generation generation;
  std::int64_t step = 0;
  Tick at = 0;

  bool operator==(const StepMark&) const = default;
};

// One worker that a rehearsal started after its beginning.
struct JoinMark {
  int worker = 0;
  Tick started = 0;
  std::optional<Tick> first_step;  // nothing: it never trained, as a spare or because it was killed before

  bool operator==(const JoinMark&) const = default;
};

// Some time, [begin, end).
struct Span {
  Tick begin = 0;
  Tick end = 0;

  bool operator==(const Span&) const = default;
};

// What happened in a rehearsal, in order of time.
struct TraceRecord {
  std::int64_t window = 1;  // minibatches of an update
  std::vector<StepMark> steps;
  std::vector<GenerationChanged> changes;  // as the workers tell them; the first is the start of the job
  std::vector<Tick> losses;                // when workers were killed
  std::vector<JoinMark> joins;
  std::vector<Span> nobody;  // when the trace had no worker for the job
};

// What one change of membership cost, in real seconds.
struct ChangeFigures {
  Generation generation;  // that it led to
  bool is_loss = false;   // workers were killed since the last update before it
  std::int64_t redone = 0;
  double stall = 0;
  double redone_seconds = 0;
  GenerationChanged::Phases phases;  // as the job tells them

  double lost() const { return stall + redone_seconds; }
  bool operator==(const ChangeFigures&) const = default;
};

struct TraceFigures {
  std::vector<ChangeFigures> changes;
  double pauses = 0;              // seconds, see below
  std::int64_t steps = 0;         // of the job: the highest
  std::int64_t steps_redone = 0;  // whole updates that were made more than once
  double shortest_step = 0;       // the steady ones of all generations
  double longest_step = 0;

  double stalls() const;
  double redone_seconds() const;
  std::int64_t redone() const;
  double lost() const { return stalls() + redone_seconds() + pauses; }
  double cost_per_change(int number) const { return number == 0 ? 0 : lost() / number; }
  double largest_cost() const;  // of one change
  bool operator==(const TraceFigures&) const = default;
};

// Reckons from the times of updates, not from what the job says of itself. The steady step time of a generation is the
// median between its updates. Between the last update of one generation and the first of the next, all beyond one
// steady step is lost; the part of a window that a death threw away is in that time already, and counts as redone work
// as far as the job names its minibatches, else as stall. Whole updates that are made again cost a steady step each.
// Pauses are what pairs of updates inside one generation took beyond a steady step where that was more than twice as
// long. Time without any worker is not lost: nobody could have trained.
TraceFigures figures_of(const TraceRecord& record);

// 1 - lost / trace time: what is lost counts in real seconds, the trace in its own.
double goodput_of(double lost_seconds, std::int64_t trace_ms);

// How long newcomers waited for their first update, in real seconds.
struct JoinFigures {
  int joined = 0;  // those who trained
  double median = 0;
  double longest = 0;
  double total = 0;

  bool operator==(const JoinFigures&) const = default;
};
JoinFigures join_figures_of(const std::vector<JoinMark>& joins);

}  // namespace everstep::launcher
