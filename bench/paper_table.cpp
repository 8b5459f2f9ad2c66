#include "bench/paper_table.h"

#include "scheduler/model_shape.h"
#include "scheduler/timeline.h"

namespace everstep::bench {
namespace {

using scheduler::ModelProfile;
using scheduler::ScheduleKind;
using scheduler::TimingModel;

constexpr int kDepth = 8;

// Stages of equally many transformer blocks; embedding and head come on top of the first and the last.
TimingModel equal_blocks(const ModelProfile& profile, int stages) {
  const int layers = static_cast<int>(profile.blocks.size()) - 2;
  TimingModel model;
  for (int stage = 0; stage < stages; ++stage) {
    const int begin = stage == 0 ? 0 : 1 + stage * layers / stages;
    const int end = stage == stages - 1 ? layers + 2 : 1 + (stage + 1) * layers / stages;
    model.stages.push_back(stage_cost(profile, begin, end));
  }
  return model;
}

double windows_per_second(const ModelProfile& profile, ScheduleKind kind, int rounds, int chunks, double update) {
  scheduler::ScheduleRequest request;
  request.kind = kind;
  request.depth = kDepth;
  request.window = rounds * kDepth;
  request.chunks_per_device = chunks;
  TimingModel model = equal_blocks(profile, kDepth * chunks);
  // An inner stage is the measure: it has transformer blocks only.
  model.update = static_cast<Tick>(update * static_cast<double>(model.stages[1].forward));
  return 1 / to_seconds(steady_state(request, model)->window);
}

PaperRow row(const std::string& name, int rounds, double update, double published_amdp, double published_interleaved) {
  const ModelProfile profile = estimate_profile(*scheduler::find_model(name));
  const int layers = static_cast<int>(profile.blocks.size()) - 2;
  constexpr int kLayersPerChunk = 2;
  const int chunks = layers / kDepth / kLayersPerChunk;
  const double base = windows_per_second(profile, ScheduleKind::kPipedream2bw, rounds, 1, 0);
  return {name,
          rounds,
          windows_per_second(profile, ScheduleKind::kAmdp, rounds, 1, update) / base,
          windows_per_second(profile, ScheduleKind::kInterleaved, rounds, chunks, 0) / base,
          published_amdp,
          published_interleaved};
}

}  // namespace

std::vector<PaperRow> paper_table(double update) {
  // Published: thousands of tokens per second of AMDP and interleaved 1F1B over those of PipeDream-2BW.
  return {
      row("gpt-1.56b", 1, update, 75.5 / 70.3, 57.0 / 70.3),
      row("gpt-1.56b", 4, update, 83.7 / 71.6, 67.5 / 71.6),
      row("bert-1.04b", 1, update, 78.5 / 74.3, 37.5 / 74.3),
      row("bert-1.04b", 4, update, 86.1 / 75.8, 58.8 / 75.8),
  };
}

}  // namespace everstep::bench
