#include <utility>

#include "tests/trainer/recovery/handover_chain.h"
#include "tests/trainer/recovery/mixing_stage.h"

namespace everstep::trainer {
namespace {

// Compares the update at the end of a window with what the workers were told of it.
std::string difference_at_update(const HandoverChain& chain, std::int64_t window, const ReferenceStep::Update& update) {
  const auto place = static_cast<std::size_t>(window);
  if (place >= chain.steps().size()) return "no update of window " + std::to_string(window);
  const StepReport& step = chain.steps()[place];
  const bool is_same = step.step == window + 1 && step.loss == update.loss &&
                       (step.skipped || step.gradient_norm == update.gradient_norm) && step.skipped == update.skipped;
  return is_same ? "" : "another update of window " + std::to_string(window);
}

std::vector<double> losses_of(const HandoverChain& chain) {
  std::vector<double> losses;
  for (const WindowHistory& entry : chain.history()) {
    losses.insert(losses.end(), entry.losses.begin(), entry.losses.end());
  }
  return losses;
}

TrainHooks reference_hooks(const HandoverChain& chain) {
  TrainHooks hooks;
  add_mixing_hooks(chain.options().model, hooks);
  if (!chain.poisoned.empty()) {
    hooks.make_stage = [&chain](const StageRequest& request) { return make_poisoned_stage(request, chain.poisoned); };
  }
  return hooks;
}

}  // namespace

TrainOptions chain_options(int window, std::int64_t steps) {
  TrainOptions options;
  options.model = mixing_model(10);
  options.schedule.window = window;
  options.accumulation = Accumulation::kFixedPoint;
  options.adam.clip_norm = 0.05;
  options.learning_rate = {
      .peak = 0.05, .floor = 0.01, .decay = Decay::kCosine, .warmup_samples = 2 * window, .total_samples = 20 * window};
  options.steps = steps;
  options.lineage = 0xC4A1;
  options.peer_timeout = std::chrono::seconds(20);
  return options;
}

std::vector<HistoryEntry> history_entries(const HandoverChain& chain) {
  std::vector<HistoryEntry> entries;
  for (const WindowHistory& past : chain.history()) {
    entries.push_back({past.window, past.first, past.end, past.generation, chain.plans().at(past.generation.value),
                       past.flushed, past.skipped, past.left_out, past.norm_limit, past.provisional});
  }
  return entries;
}

std::string difference_from_history(const HandoverChain& chain, const std::vector<HistoryEntry>& entries) {
  const auto state = chain.state();
  if (!state) return state.error().message;
  const auto data = make_no_minibatches();
  ReferenceRun reference(chain.options(), *data, reference_hooks(chain));
  std::vector<double> losses;
  for (const HistoryEntry& entry : entries) {
    const auto step = reference.run(entry);
    if (!step) return step.error().message;
    losses.insert(losses.end(), step->losses.begin(), step->losses.end());
    if (!step->update) continue;
    std::string difference = difference_at_update(chain, entry.window, *step->update);
    if (!difference.empty()) return difference;
  }
  if (losses != losses_of(chain)) return "losses";
  return difference_between(state_of(reference, chain.options().schedule.window), *state);
}

std::string difference_from_reference(const HandoverChain& chain) {
  return difference_from_history(chain, history_entries(chain));
}

std::string difference_from_undisturbed(const HandoverChain& chain) {
  const int window = chain.options().schedule.window;
  scheduler::Plan alone;
  alone.window = window;
  alone.cuts = {0, chain.options().model.blocks()};
  std::vector<HistoryEntry> entries;
  for (std::int64_t left = chain.position().value; left > 0; left -= window) {
    const auto minibatches = static_cast<int>(std::min<std::int64_t>(left, window));
    entries.push_back({std::ssize(entries), 0, minibatches, Generation{1}, alone, true, false});
  }
  return difference_from_history(chain, entries);
}

}  // namespace everstep::trainer
