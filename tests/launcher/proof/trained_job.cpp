#include "tests/launcher/proof/trained_job.h"

#include <algorithm>
#include <sstream>

#include "launcher/cli/files.h"
#include "launcher/job/stored_model.h"
#include "launcher/proof/stored_request.h"
#include "scheduler/plan_text.h"
#include "tests/trainer/recovery/mixing_stage.h"
#include "trainer/checkpoints/commit_assembly.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::launcher {
namespace {

constexpr int kWindow = 4;
constexpr int kSteps = 6;
constexpr std::uint64_t kLineage = 0x1122334455667788;
constexpr Generation kGeneration{1};
constexpr storage::WriterTag kWriter{7, 0xffff};

trainer::Buffer copy_of(const trainer::Buffer& buffer) {
  trainer::Buffer copy = trainer::allocate_zeroed(buffer.size);
  std::ranges::copy(buffer.as<std::byte>(), copy.as<std::byte>().begin());
  return copy;
}

}  // namespace

TrainedJob::TrainedJob(const std::string& directory, const Untruths& untruths)
    : untruths_(untruths), location_{directory + "/saves", "job", ""}, model_(trainer::mixing_model(2)) {
  std::string corpus;
  while (corpus.size() < 4000) corpus += "the quick brown fox jumps over the lazy dog. ";
  EVERSTEP_CHECK(write_file(directory + "/corpus.txt", corpus).ok(), "a corpus");
  auto store = open_checkpoint_store(location_, StoreAccess::kCreate);
  EVERSTEP_CHECK(store.ok(), store.error().line());
  store_ = std::move(store).value();

  model_.shape.vocabulary = 256;
  configuration_ = model_settings(model_);
  for (const auto& [name, value] : storage::Settings{{"data", directory + "/corpus.txt"},
                                                     {"lr", "0.05"},
                                                     {"minibatch", "1"},
                                                     {"reproducible", untruths_.reproducible ? "true" : "false"},
                                                     {"seed", "5"},
                                                     {"steps", std::to_string(kSteps)},
                                                     {"window", std::to_string(kWindow)},
                                                     {"workers", "1"}}) {
    configuration_.emplace_back(name, value);
  }
  std::sort(configuration_.begin(), configuration_.end());

  storage::Manifest settings;
  settings.configuration = configuration_;
  settings.plan.window = kWindow;
  const auto asked = stored_request(settings, "");
  EVERSTEP_CHECK(asked.ok(), asked.error().line());
  const auto data = open_data(*asked->data, asked->options.model);
  EVERSTEP_CHECK(data.ok(), data.error().line());
  trainer::ReferenceRun run(asked->options, **data, hooks_of(*asked));
  for (const Position end : {Position{8}, Position{14}, Position{kSteps * kWindow}}) train_to(end, run);
}

Result<ReplayReport> TrainedJob::replayed(const ReplayRequest& request) {
  std::ostringstream out;
  Streams streams{out, out};
  return replay(
      *store_, request, [this](const TrainRequest& asked) { return hooks_of(asked); }, streams);
}

std::string TrainedJob::path_of_manifest(const storage::CatalogEntry& entry) const {
  return location_.path() + "/" + manifest_path(kLineage, entry.head.checkpoint, entry.head.writer);
}

trainer::TrainHooks TrainedJob::hooks_of(const TrainRequest& asked) const {
  trainer::TrainHooks hooks;
  add_mixing_hooks(asked.options.model, hooks);
  hooks.make_stage = [poisoned = untruths_.poisoned](const trainer::StageRequest& request) {
    return make_poisoned_stage(request, poisoned);
  };
  return hooks;
}

// Of two stages the provisional step sums two minibatches: all that lie before the checkpoint inside a window.
scheduler::Plan TrainedJob::plan() const {
  scheduler::Plan plan;
  plan.window = kWindow;
  plan.cuts = {0, model_.blocks()};
  if (!untruths_.provisional) return plan;
  plan.kind = scheduler::ScheduleKind::kClockwork;
  plan.depth = 2;
  plan.pipelines = 1;
  plan.provisional = 2;
  plan.cuts = {0, 1, model_.blocks()};
  return plan;
}

trainer::CutKind TrainedJob::kind_of(const storage::Manifest& manifest) const {
  if (manifest.minibatches_into_window() > 0) return trainer::CutKind::kInWindow;
  const bool is_live = untruths_.provisional && untruths_.keeps_provisional && manifest.version.value < kSteps;
  return is_live ? trainer::CutKind::kLive : trainer::CutKind::kFlush;
}

// One entry per window and checkpoint, as trainers write them.
void TrainedJob::train_to(Position end, trainer::ReferenceRun& run) {
  storage::LedgerSegment ledger;
  ledger.lineage = kLineage;
  ledger.begin = run.position();
  ledger.end = end;
  const scheduler::Plan plan = this->plan();
  std::vector<storage::StoredLoss> unfinished;
  while (run.position() < end) {
    const std::int64_t window = run.position().value / kWindow;
    const auto first = static_cast<int>(run.position().value % kWindow);
    const auto last = static_cast<int>(std::min<std::int64_t>(kWindow, end.value - window * kWindow));
    const bool flushed = first == 0 && window == 0;
    trainer::HistoryEntry entry{window, first, last, kGeneration, plan, flushed, untruths_.left_out.contains(window)};
    for (int i = first; i < last; ++i) {
      if (untruths_.not_run.contains(static_cast<int>(window * kWindow + i))) entry.left_out.push_back(i);
    }
    entry.provisional = plan.provisional > 0 && window > 0;
    const auto step = run.run(entry);
    EVERSTEP_CHECK(step.ok(), step.error().line());
    const bool skipped = step->update && step->update->skipped;
    if (skipped) skipped_.push_back(window);
    ledger.entries.push_back({window, first, last, kGeneration, scheduler::plan_text(plan), flushed, skipped,
                              step->losses, entry.left_out, 0, entry.provisional});
    unfinished.clear();
    for (int i = 0; last < kWindow && i < last; ++i) unfinished.push_back({i, step->losses[i]});
    if (untruths_.entry) untruths_.entry(ledger.entries.back());
  }
  storage::Manifest manifest = manifest_at(end, run);
  manifest.window_losses = unfinished;
  commit(std::move(manifest), ledger, run);
}

storage::Manifest TrainedJob::manifest_at(Position end, const trainer::ReferenceRun& run) const {
  storage::Manifest manifest;
  manifest.job = location_.job;
  manifest.lineage = kLineage;
  manifest.name = {kGeneration, end, 0xabc};
  manifest.version = {end.value / kWindow};
  manifest.applied = run.applied();
  manifest.clip_scale = run.clip_scale();
  manifest.plan = trainer::stored_plan(plan());
  manifest.blocks = model_.blocks();
  manifest.accumulation =
      accumulation_name(untruths_.reproducible ? trainer::Accumulation::kFixedPoint : trainer::Accumulation::kFloat);
  manifest.flushed = {0};
  manifest.skipped = skipped_;
  manifest.loss = 2.5;
  manifest.configuration = configuration_;
  manifest.provenance = {{"everstep", "test"}};
  return manifest;
}

void TrainedJob::commit(storage::Manifest manifest, const storage::LedgerSegment& ledger,
                        const trainer::ReferenceRun& run) {
  EVERSTEP_CHECK(store_->catalog().make_directory(kLineage, manifest.name).ok(), "a directory");
  write_files(manifest, run);
  const auto parent = checkpoints_.empty() ? std::nullopt : std::optional(checkpoints_.back());
  auto entry = store_->catalog().commit({std::move(manifest), kWriter, ledger, parent});
  EVERSTEP_CHECK(entry.ok(), entry.error().line());
  checkpoints_.push_back(std::move(entry).value());
}

void TrainedJob::write_files(storage::Manifest& manifest, const trainer::ReferenceRun& run) {
  trainer::StagedCut cut;
  cut.kind = kind_of(manifest);
  cut.position = manifest.name.position;
  cut.version = manifest.version;
  cut.nonce = manifest.name.nonce;
  for (int block = 0; block < run.blocks(); ++block) {
    const trainer::StageState all = run.state(block);
    trainer::StageState copy;
    copy.weights = copy_of(all.weights);
    copy.first_moment = copy_of(all.first_moment);
    copy.second_moment = copy_of(all.second_moment);
    if (cut.kind == trainer::CutKind::kInWindow) copy.gradients = copy_of(all.gradients);
    if (cut.kind == trainer::CutKind::kLive) copy.provisional = copy_of(all.provisional);
    if (block == 1 && untruths_.state) untruths_.state(cut.position, copy);
    cut.stages.push_back({block, run.layout(block), copy});
  }
  const auto accumulation = untruths_.reproducible ? trainer::Accumulation::kFixedPoint : trainer::Accumulation::kFloat;
  std::uint32_t count = 0;
  for (storage::BlockState& file : block_states(model_, accumulation, cut, kGeneration)) {
    file.record.writer = {kWriter.author, count++};
    auto record = write_block_file(store_->files(), manifest.job, kLineage, file);
    EVERSTEP_CHECK(record.ok(), record.error().line());
    manifest.files.push_back(std::move(record).value());
  }
}

}  // namespace everstep::launcher
