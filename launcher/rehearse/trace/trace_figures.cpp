#include "launcher/rehearse/trace/trace_figures.h"

#include <algorithm>
#include <map>
#include <string>

namespace everstep::launcher {
namespace {

constexpr std::size_t kEnough = 3;  // intervals for a median

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The updates of one generation.
struct Stretch {
  Generation generation;
  std::vector<StepMark> steps{};
  const GenerationChanged* change = nullptr;  // nullptr: nobody told
  double steady = 0;                          // seconds
  std::int64_t again = 0;                     // whole updates that the change to it made necessary again,
  double again_seconds = 0;                   // also those that a later generation made

  std::vector<double> intervals() const {
    std::vector<double> seconds;
    for (std::size_t i = 1; i < steps.size(); ++i) seconds.push_back(to_seconds(steps[i].at - steps[i - 1].at));
    return seconds;
  }
  std::string plan() const { return change == nullptr ? "" : change->plan; }
};

std::vector<Stretch> stretches_of(const TraceRecord& record) {
  std::vector<Stretch> stretches;
  for (const StepMark& step : record.steps) {
    if (stretches.empty() || stretches.back().generation != step.generation) {
      stretches.push_back({step.generation});
    }
    stretches.back().steps.push_back(step);
  }
  for (Stretch& stretch : stretches) {
    const auto told = std::find_if(record.changes.begin(), record.changes.end(), [&](const GenerationChanged& change) {
      return change.generation == stretch.generation;
    });
    if (told != record.changes.end()) stretch.change = &*told;
  }
  return stretches;
}

// A generation too short for a median takes that of its plan, then that of all.
void find_steady_times(std::vector<Stretch>& stretches) {
  std::map<std::string, std::vector<double>> of_plan;
  std::vector<double> all;
  for (const Stretch& stretch : stretches) {
    const std::vector<double> intervals = stretch.intervals();
    std::vector<double>& same = of_plan[stretch.plan()];
    same.insert(same.end(), intervals.begin(), intervals.end());
    all.insert(all.end(), intervals.begin(), intervals.end());
  }
  for (Stretch& stretch : stretches) {
    const std::vector<double>& same = of_plan[stretch.plan()];
    const std::vector<double> own = stretch.intervals();
    stretch.steady = median_of(own.size() >= kEnough ? own : same.size() >= kEnough ? same : all);
  }
}

// Who goes back answers for all updates up to where the job had been, also if joins come between.
void find_updates_made_again(std::vector<Stretch>& stretches) {
  Stretch* answers = nullptr;
  std::int64_t highest = 0;
  std::int64_t last = 0;
  for (Stretch& stretch : stretches) {
    if (stretch.steps.front().step <= last) answers = &stretch;
    for (const StepMark& step : stretch.steps) {
      if (answers != nullptr && step.step <= highest) {
        ++answers->again;
        answers->again_seconds += stretch.steady;
      }
      last = step.step;
      highest = std::max(highest, last);
    }
  }
}

double overlap(const std::vector<Span>& spans, Tick begin, Tick end) {
  Tick sum = 0;
  for (const Span& span : spans) sum += std::max<Tick>(0, std::min(end, span.end) - std::max(begin, span.begin));
  return to_seconds(sum);
}

double pauses_in(const Stretch& stretch) {
  double sum = 0;
  for (const double interval : stretch.intervals()) {
    if (interval > 2 * stretch.steady) sum += interval - stretch.steady;
  }
  return sum;
}

ChangeFigures cost_of(const TraceRecord& record, const StepMark& last, const Stretch& next) {
  ChangeFigures cost;
  cost.generation = next.generation;
  const Tick begin = last.at;
  const Tick end = next.steps.front().at;
  // The last update may just have been possible without those who were killed.
  const Tick since = begin - ticks_of(next.steady);
  cost.is_loss =
      std::any_of(record.losses.begin(), record.losses.end(), [&](Tick at) { return at >= since && at < end; });
  const double gap = to_seconds(end - begin) - overlap(record.nobody, begin, end);
  const double beyond = std::max(0.0, gap - next.steady);
  const std::int64_t whole = next.again * record.window;
  cost.redone = whole;
  if (next.change != nullptr) {
    cost.redone = std::max(cost.redone, next.change->redone);
    cost.phases = next.change->phases;
  }
  const auto part = static_cast<double>(cost.redone - whole) / static_cast<double>(record.window);
  const double thrown_away = std::min(beyond, part * next.steady);
  cost.stall = beyond - thrown_away;
  cost.redone_seconds = thrown_away + next.again_seconds;
  return cost;
}

}  // namespace

double TraceFigures::stalls() const {
  double sum = 0;
  for (const ChangeFigures& change : changes) sum += change.stall;
  return sum;
}

double TraceFigures::redone_seconds() const {
  double sum = 0;
  for (const ChangeFigures& change : changes) sum += change.redone_seconds;
  return sum;
}

std::int64_t TraceFigures::redone() const {
  std::int64_t sum = 0;
  for (const ChangeFigures& change : changes) sum += change.redone;
  return sum;
}

double TraceFigures::largest_cost() const {
  double largest = 0;
  for (const ChangeFigures& change : changes) largest = std::max(largest, change.lost());
  return largest;
}

TraceFigures figures_of(const TraceRecord& record) {
  TraceFigures figures;
  std::vector<Stretch> stretches = stretches_of(record);
  find_steady_times(stretches);
  find_updates_made_again(stretches);
  const StepMark* last = nullptr;
  for (const Stretch& stretch : stretches) {
    if (last != nullptr) figures.changes.push_back(cost_of(record, *last, stretch));
    figures.steps_redone += stretch.again;
    figures.pauses += pauses_in(stretch);
    for (const StepMark& step : stretch.steps) figures.steps = std::max(figures.steps, step.step);
    const bool is_first = figures.longest_step == 0;
    figures.shortest_step = is_first ? stretch.steady : std::min(figures.shortest_step, stretch.steady);
    figures.longest_step = std::max(figures.longest_step, stretch.steady);
    last = &stretch.steps.back();
  }
  return figures;
}

double goodput_of(double lost_seconds, std::int64_t trace_ms) {
  return std::max(0.0, 1 - 1000 * lost_seconds / static_cast<double>(trace_ms));
}

JoinFigures join_figures_of(const std::vector<JoinMark>& joins) {
  JoinFigures figures;
  std::vector<double> waits;
  for (const JoinMark& join : joins) {
    if (join.first_step) waits.push_back(to_seconds(*join.first_step - join.started));
  }
  for (const double wait : waits) {
    figures.total += wait;
    figures.longest = std::max(figures.longest, wait);
  }
  figures.joined = static_cast<int>(waits.size());
  figures.median = median_of(std::move(waits));
  return figures;
}

}  // namespace everstep::launcher
