#include "launcher/worker/worker_checkpoints.h"

#include <utility>

#include "launcher/job/resume_rules.h"
#include "trainer/checkpoints/commit_assembly.h"
#include "trainer/checkpoints/parallel.h"
#include "trainer/checkpoints/restore.h"

namespace everstep::launcher {
namespace {

int threads_of(const TrainPlan& plan) { return trainer::file_threads(static_cast<int>(plan.plan.workers.size())); }

}  // namespace

Result<std::unique_ptr<WorkerCheckpoints>> WorkerCheckpoints::open(const TrainRequest& request, const TrainPlan& plan,
                                                                   const WorkerIdentity& identity, ControlLink& link) {
  auto store = open_checkpoint_store(request.checkpoints->store, StoreAccess::kExisting);
  if (!store) return store.error();
  std::optional<storage::CatalogEntry> start;
  if (identity.start_from) {
    auto found = trainer::find_checkpoint((*store)->catalog(), *identity.start_from);
    if (!found) return found.error();
    start = std::move(found).value();
  }
  return std::unique_ptr<WorkerCheckpoints>(
      new WorkerCheckpoints(request, plan, link, std::move(store).value(), std::move(start), identity));
}

WorkerCheckpoints::WorkerCheckpoints(const TrainRequest& request, const TrainPlan& plan, ControlLink& link,
                                     std::unique_ptr<CheckpointStore> store, std::optional<storage::CatalogEntry> start,
                                     const WorkerIdentity& identity)
    : request_(request),
      plan_(plan),
      link_(link),
      store_(std::move(store)),
      start_(std::move(start)),
      writer_(writer_setup(request, plan, identity), store_->ports(), [this](const trainer::SaveWord& word) {
        std::visit([this](const auto& message) { link_.send(message); }, word);
      }) {
  link_.set_verdict_taker([this](const trainer::Verdict& verdict) { writer_.take(verdict); });
}

trainer::WriterSetup WorkerCheckpoints::writer_setup(const TrainRequest& request, const TrainPlan& plan,
                                                     const WorkerIdentity& identity) {
  trainer::WriterSetup setup;
  setup.job = request.checkpoints->store.job;
  setup.lineage = identity.lineage;
  setup.generation = identity.generation;
  setup.rank = identity.rank;
  setup.threads = threads_of(plan);
  setup.model = request.options.model;
  setup.accumulation = request.options.accumulation;
  return setup;
}

std::optional<trainer::ResumePoint> WorkerCheckpoints::start() const {
  if (!start_) return std::nullopt;
  return resume_point(start_->manifest, plan_.plan);
}

void WorkerCheckpoints::add_hooks(trainer::TrainHooks& hooks) {
  hooks.checkpoints = &writer_;
  if (!start_) return;
  hooks.restore = [this](const trainer::StageLayout& layout, const trainer::StageState& state) {
    const trainer::TrainOptions& options = request_.options;
    return trainer::restore_stage(store_->files(), start_->manifest, options.model, options.accumulation, layout, state,
                                  threads_of(plan_));
  };
}

}  // namespace everstep::launcher
