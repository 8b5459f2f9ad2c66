#pragma once

#include <memory>
#include <optional>

#include "launcher/job/checkpoint_store.h"
#include "launcher/job/train_plan.h"
#include "launcher/worker/control_link.h"
#include "launcher/worker/worker_arguments.h"
#include "trainer/checkpoints/checkpoint_writer.h"

namespace everstep::launcher {

// What a worker process has to do with checkpoints: it restores its stages from one, and writes its part of others.
class WorkerCheckpoints {
 public:
  // kDataLoss if the checkpoint to start from is gone. All but the identity must outlive what is returned.
  static Result<std::unique_ptr<WorkerCheckpoints>> open(const TrainRequest& request, const TrainPlan& plan,
                                                         const WorkerIdentity& identity, ControlLink& link);
  WorkerCheckpoints(const WorkerCheckpoints&) = delete;
  WorkerCheckpoints& operator=(const WorkerCheckpoints&) = delete;
  ~WorkerCheckpoints() { link_.set_verdict_taker({}); }

  // Where to start; nothing: at the beginning.
  std::optional<trainer::ResumePoint> start() const;

  void add_hooks(trainer::TrainHooks& hooks);

 private:
  WorkerCheckpoints(const TrainRequest& request, const TrainPlan& plan, ControlLink& link,
                    std::unique_ptr<CheckpointStore> store, std::optional<storage::CatalogEntry> start,
                    const WorkerIdentity& identity);
  static trainer::WriterSetup writer_setup(const TrainRequest& request, const TrainPlan& plan,
                                           const WorkerIdentity& identity);

  const TrainRequest& request_;
  const TrainPlan& plan_;
  ControlLink& link_;
  std::unique_ptr<CheckpointStore> store_;
  std::optional<storage::CatalogEntry> start_;
  trainer::CheckpointWriter writer_;
};

}  // namespace everstep::launcher
