#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elastic/records.h"
#include "elastic/view.h"
#include "launcher/job/checkpoint_store.h"
#include "launcher/job/curve.h"
#include "launcher/worker/background_threads.h"
#include "launcher/worker/kv_head_store.h"
#include "storage/retention.h"
#include "trainer/checkpoints/checkpoint_committer.h"

namespace everstep::launcher {

// What commits of all generations of this job have in common.
struct CommitFacts {
  elastic::Keys keys;
  WorkerId self;
  storage::RetentionOptions retention;
  trainer::RunFacts run;            // all but generation, plan and what was found
  std::int64_t first_sequence = 0;  // of the newest checkpoint in the directory when the job was created
  Curve& curve;
};

// The leader's part in saving: collects the workers' acknowledgements of the present generation, makes checkpoints of
// them and tells what became of each. A generation or a leadership that ends takes its committer with it; HEAD's
// transaction sees to it that a late one changes nothing. Not thread-safe.
class CommitRole {
 public:
  CommitRole(elastic::KvStore& kv, CheckpointStore& store, CommitFacts facts,
             std::function<void(const std::string& event)> on_event);
  CommitRole(const CommitRole&) = delete;
  CommitRole& operator=(const CommitRole&) = delete;
  ~CommitRole();

  // Whatever follows from the view. `leader` is when the leadership of this worker was created; 0: it does not lead.
  // kDataLoss: the files are ahead of the store, which has forgotten commits: nothing may be committed on top of it.
  Status look(const elastic::View& view, elastic::Revision leader);

  // Whether a verdict is due that nobody will announce by a key.
  bool is_busy() const { return !collecting_.empty() || !untold_.empty(); }

  trainer::CheckpointCounts counts() const;  // of all generations led so far

 private:
  struct Term;  // one generation under one leadership

  Status begin(const elastic::View& view, const elastic::GenerationRecord& generation, CommitRight right);
  Result<std::optional<storage::Head>> head_in(const elastic::View& view) const;
  Result<bool> is_store_behind(const elastic::View& view, const std::optional<storage::Head>& stored,
                               const std::optional<storage::Head>& on_disk);
  void end();
  void collect(const elastic::View& view);
  void pass_on_news();
  void tell_verdicts();

  elastic::KvStore& kv_;
  CheckpointStore& store_;
  const CommitFacts facts_;
  const std::function<void(const std::string& event)> on_event_;
  std::unique_ptr<Term> term_;
  std::set<std::string> taken_;       // keys of acknowledgements that the committer knows
  std::set<std::string> collecting_;  // checkpoints without a verdict
  std::vector<trainer::Verdict> untold_;
  bool is_in_doubt_ = false;
  trainer::CheckpointCounts past_;
  std::atomic<bool> is_over_{false};  // nobody waits for an etcd that is away any more
  BackgroundThreads retired_;         // committers that still conclude what they were told
};

}  // namespace everstep::launcher
