#include "tests/scheduler/naive_clock.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/scheduler/naive_shape.h"

namespace everstep::scheduler {
namespace {

// The slots of a minibatch on its way through the stages and back, the first forward at 0.
std::vector<std::pair<OpKind, int>> way_of(int stages) {
  std::vector<std::pair<OpKind, int>> way;
  for (int stage = 0; stage < stages; ++stage) way.emplace_back(OpKind::kForward, stage);
  for (int stage = stages - 1; stage >= 0; --stage) way.emplace_back(OpKind::kBackward, stage);
  return way;
}

bool collide(const ScheduleRequest& request, const std::vector<int>& phases) {
  const int round = 2 * naive_pipelines(request);
  std::set<std::pair<int, int>> taken;  // device, slot of a round
  for (int pipeline = 0; pipeline < naive_pipelines(request); ++pipeline) {
    int slot = phases[pipeline];
    for (const auto& [kind, stage] : way_of(request.depth)) {
      if (!taken.insert({naive_device_of(request, pipeline, stage), slot++ % round}).second) return true;
    }
  }
  return false;
}

// When a minibatch of this pipeline runs this op, if its round is the first.
int slot_in_first_round(const ScheduleRequest& request, int pipeline, OpKind kind, int stage) {
  const auto way = way_of(request.depth);
  const auto place = std::find(way.begin(), way.end(), std::pair(kind, stage));
  return naive_phases(request)[pipeline] + static_cast<int>(place - way.begin());
}

// The last slot before the update of a window whose last round is this one.
int slot_of_update(const ScheduleRequest& request, int last_round) {
  int last = 0;
  for (int pipeline = 0; pipeline < naive_pipelines(request); ++pipeline) {
    last = std::max(last, slot_in_first_round(request, pipeline, OpKind::kBackward, 0));
  }
  return last + 2 * naive_pipelines(request) * last_round + request.lag;
}

// Rounds of a window that is run to its end.
int rounds_of_window(const ScheduleRequest& request, std::int64_t window) {
  const int left = request.window - (window == request.first_window ? request.first_minibatch : 0);
  int rounds = 0;
  for (int dealt = 0; dealt < left; dealt += naive_pipelines(request) * request.width) ++rounds;
  return rounds;
}

}  // namespace

std::vector<int> naive_phases(const ScheduleRequest& request) {
  static std::map<std::pair<int, int>, std::vector<int>> known;
  const int pipelines = naive_pipelines(request);
  std::vector<int>& phases = known[{request.depth, pipelines}];
  for (int step = 0; phases.empty(); step += 2) {
    std::vector<int> tried;
    for (int pipeline = 0; pipeline < pipelines; ++pipeline) tried.push_back(step * pipeline % (2 * pipelines));
    if (!collide(request, tried)) phases = tried;
  }
  return phases;
}

int naive_rounds_begun_before_update(const ScheduleRequest& request) {
  // The window before ends with round -1 of this one.
  const int update = slot_of_update(request, -1);
  int begun = 0;
  while (slot_in_first_round(request, 0, OpKind::kForward, 0) + 2 * naive_pipelines(request) * begun <= update) ++begun;
  return begun;
}

bool naive_backwards_meet(const ScheduleRequest& request, int device, int stage) {
  for (int pipeline = 0; pipeline < naive_pipelines(request); ++pipeline) {
    if (naive_device_of(request, pipeline, stage) != device) continue;
    return slot_in_first_round(request, pipeline, OpKind::kBackward, stage) <= slot_of_update(request, -1);
  }
  return false;
}

std::vector<std::string> naive_slot_problems(const Schedule& schedule) {
  const ScheduleRequest& request = schedule.request;
  // When each op is due, by its text; updates at a drain have no slot.
  std::map<std::string, int> slots;
  std::map<std::string, int> updates;
  int first_round = 0;
  int drained = 0;
  for (std::int64_t window = request.first_window; window < request.first_window + request.windows; ++window) {
    if (naive_starts_drained(request, window)) {
      first_round = 0;
      drained += 1'000'000;
    }
    const int rounds = rounds_of_window(request, window);
    for (int round = 0; round < rounds; ++round) {
      for (int pipeline = 0; pipeline < naive_pipelines(request); ++pipeline) {
        for (const auto& [kind, stage] : way_of(request.depth)) {
          slots[to_string(Op{kind, stage, pipeline, round, window})] =
              drained + slot_in_first_round(request, pipeline, kind, stage) +
              2 * naive_pipelines(request) * (first_round + round);
        }
      }
    }
    first_round += rounds;
    const bool last = window == request.first_window + request.windows - 1;
    if (last || naive_starts_drained(request, window + 1)) {
      updates[to_string(update_of(window))] = drained + 999'999;
    } else {
      updates[to_string(update_of(window))] = drained + slot_of_update(request, first_round - 1);
    }
  }
  std::vector<std::string> problems;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    int latest = -1;  // slot of the ops up to here, and of the updates
    int update = -1;
    for (const Op& op : schedule.workers[worker]) {
      const std::string name = to_string(op);
      bool wrong = false;
      if (is_compute(op)) {
        wrong = slots.at(name) <= latest || slots.at(name) <= update;
        latest = std::max(latest, slots.at(name));
      } else if (op.kind == OpKind::kUpdate) {
        wrong = updates.at(name) < latest || updates.at(name) <= update;
        update = std::max(update, updates.at(name));
      }
      if (wrong) problems.push_back(name + " of worker " + std::to_string(worker) + " stands in the wrong slot");
    }
  }
  return problems;
}

}  // namespace everstep::scheduler
