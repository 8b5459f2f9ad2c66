#include <iostream>
#include <string>
#include <vector>

#include "base/text.h"
#include "scheduler/model_shape.h"
#include "scheduler/planner.h"

// Prints the busy fraction of the plan for every number of workers up to 64, without clockwork and with it, as the
// Markdown table of docs/planning.md.
namespace everstep::scheduler {
namespace {

constexpr int kMostWorkersShown = 64;

std::vector<WorkerInfo> crew(int count) {
  std::vector<WorkerInfo> workers;
  for (int i = 0; i < count; ++i) workers.push_back({WorkerId{{0, static_cast<std::uint64_t>(i) + 1}}, "host"});
  return workers;
}

Candidate best_of(const ModelProfile& profile, int workers, int window, bool clockwork) {
  PlanOptions options;
  options.window = window;
  options.clockwork = clockwork;
  return plan(profile, crew(workers), options)->chosen;
}

std::string cells(const ModelProfile& profile, int workers, int window) {
  const Candidate before = best_of(profile, workers, window, false);
  const Candidate now = best_of(profile, workers, window, true);
  std::string name = describe(now.kind, now.depth, now.pipelines, now.width);
  if (now.lag > 0) name += " lag=" + std::to_string(now.lag);
  return " " + fixed_text(before.busy, 3) + " | " + fixed_text(now.busy, 3) + " | " + name + " |";
}

}  // namespace
}  // namespace everstep::scheduler

int main() {
  namespace scheduler = everstep::scheduler;
  const scheduler::ModelProfile profile = scheduler::estimate_profile(*scheduler::find_model("gpt2-xl"));
  std::cout << "| workers | M=128: before | now | plan | M=32: before | now | plan |\n"
            << "|---:|---:|---:|---|---:|---:|---|\n";
  for (int workers = 1; workers <= scheduler::kMostWorkersShown; ++workers) {
    std::cout << "| " << workers << " |" << scheduler::cells(profile, workers, 128)
              << scheduler::cells(profile, workers, 32) << "\n";
  }
}
