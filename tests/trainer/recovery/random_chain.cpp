#include "tests/trainer/recovery/random_chain.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler/clockwork.h"

namespace everstep::trainer {
namespace {

constexpr int kDepths[] = {1, 2, 3, 4, 6, 8};
constexpr int kMostWorkers = 12;
constexpr int kLatestRound = 9;

}  // namespace

std::vector<int> names(int first, int count) {
  std::vector<int> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

RandomChain::RandomChain(std::uint64_t seed, std::vector<scheduler::ScheduleKind> kinds)
    : random_(seed, 0), kinds_(std::move(kinds)) {}

int RandomChain::below(int bound) {
  return static_cast<int>(random_.below(drawn_++, static_cast<std::uint64_t>(bound)));
}

TestGeneration RandomChain::next(const HandoverChain& chain) {
  TestGeneration next = any_plan();
  choose_provisional(next, chain.options().schedule.window);
  take_places(next, chain.workers());
  spare_some(next, chain);
  const std::int64_t updates = chain.steps().empty() ? 0 : chain.steps().back().step;
  next.stop = below(3) == 0 ? after_update(updates + 1) : after_round(below(kLatestRound));
  return next;
}

TestGeneration RandomChain::any_plan() {
  TestGeneration next;
  do {
    next.kind = kinds_[static_cast<std::size_t>(below(static_cast<int>(kinds_.size())))];
    next.depth = kDepths[below(std::size(kDepths))];
    next.width = 1 + below(3);
  } while (next.depth * next.width > kMostWorkers || !scheduler::Placement::make(next.kind, next.depth));
  if (is_clockwork(next.kind)) choose_pipelines(next);
  return next;
}

void RandomChain::choose_pipelines(TestGeneration& next) {
  const std::vector<int> possible = scheduler::clockwork_pipelines(next.depth);
  next.pipelines = possible[static_cast<std::size_t>(below(static_cast<int>(possible.size())))];
  if (next.kind == scheduler::ScheduleKind::kClockwork) next.lag = below(3);
}

// Half of those that can make provisional weights do.
void RandomChain::choose_provisional(TestGeneration& next, int window) {
  scheduler::ScheduleRequest request;
  request.kind = next.kind;
  request.depth = next.depth;
  request.width = next.width;
  request.pipelines = next.pipelines;
  request.lag = next.lag;
  request.window = window;
  const scheduler::ProvisionalRange range = scheduler::provisional_range(request);
  if (!range.empty() && below(2) == 0) next.provisional = range.fewest + below(range.most - range.fewest + 1);
}

// Who has none hands over.
void RandomChain::take_places(TestGeneration& next, std::vector<int> before) {
  for (int place = 0; place < next.depth * next.width; ++place) {
    if (before.empty() || below(2) == 0) {
      next.workers.push_back(newcomers_++);
      continue;
    }
    const auto chosen = before.begin() + below(static_cast<int>(before.size()));
    next.workers.push_back(*chosen);
    before.erase(chosen);
  }
  next.donors = std::move(before);
}

void RandomChain::spare_some(TestGeneration& next, const HandoverChain& chain) {
  const std::vector<int> donors = next.donors;
  for (const int name : donors) {
    TestGeneration without = next;
    std::erase(without.donors, name);
    if (below(2) == 0 && plan_transfer(chain.change_to(without), chain.options().model)) next = std::move(without);
  }
}

}  // namespace everstep::trainer
