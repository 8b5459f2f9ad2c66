#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "elastic/sim/checkpoint_files.h"

namespace everstep::elastic::sim {

class Process;

// What a worker adds to a checkpoint.
struct Cut {
  CheckpointName name;
  std::int64_t version = 0;
  std::map<int, BlockState> blocks;
  std::set<std::int64_t> skipped;
  std::vector<Consumed> history;
};

// Writes cuts beside the training: files, synced, then the shard that describes them, then the acknowledgement. Idle
// again once it knows what became of the checkpoint.
class Writer {
 public:
  Writer(Process& process, WorkerId self, Attempt attempt, Revision opened);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();

  bool is_idle() const { return !cut_; }
  void save(Cut cut);
  // Whether it was about the cut at hand.
  bool take_verdict(const CheckpointName& name);
  void break_off();

 private:
  struct Job;  // outlives the writer by what is already on its way

  std::shared_ptr<Job> job_;
  std::optional<CheckpointName> cut_;
};

}  // namespace everstep::elastic::sim
