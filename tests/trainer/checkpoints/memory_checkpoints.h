#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/manifest.h"
#include "trainer/loop/train_loop.h"

namespace everstep::trainer {

// Where a stored tensor belongs.
struct TensorKey {
  int block = 0;
  int kind = 0;  // storage::StateKind
  std::string name;

  auto operator<=>(const TensorKey&) const = default;
};

// A checkpoint of which all workers have brought their part.
struct MemoryCheckpoint {
  CutKind kind = CutKind::kFlush;
  Position position;
  Version version;
  std::int64_t applied = 0;
  double clip_scale = 1;
  std::optional<double> validation_loss;
  std::map<TensorKey, std::string> tensors;  // their bytes
  std::vector<MinibatchLoss> losses;         // of the unfinished window, ascending
  std::vector<WindowHistory> history;        // as worker 0 tells it

  bool has(storage::StateKind wanted) const;
  void drop(storage::StateKind kind);  // zeroes all tensors of that kind
};

// Checkpoints of a run in memory: what a directory of files is to a real one. Shared by the threads of all workers.
class MemoryCheckpoints {
 public:
  explicit MemoryCheckpoints(const TrainOptions& options);

  // Hooks for one worker that save here. `busy` (may be empty) tells whether its writer pretends to be at work.
  void save_here(int worker, TrainHooks& hooks, std::function<bool()> busy = {});

  // Complete ones, oldest first.
  std::vector<MemoryCheckpoint> complete() const;

  // How often each worker was told that a save was skipped.
  std::vector<int> skipped() const;

 private:
  class Sink;
  struct Parts {
    MemoryCheckpoint joined;
    int workers = 0;
    bool usable = true;
  };

  void add(int worker, const StagedCut& cut);

  TrainOptions options_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::uint32_t>, Parts> parts_;  // by position and nonce
  std::vector<std::unique_ptr<CheckpointSink>> sinks_;             // by worker
  std::vector<int> skipped_;
};

// Options and hooks that go on from a checkpoint. The checkpoint must outlive the run.
TrainOptions resumed(TrainOptions options, const MemoryCheckpoint& checkpoint, bool continues_live);
void restore_from(const MemoryCheckpoint& checkpoint, const TrainOptions& options, TrainHooks& hooks);

// The first tensor that differs, in words; empty if all bits of both are equal.
std::string difference_between(const MemoryCheckpoint& expected, const MemoryCheckpoint& other);

}  // namespace everstep::trainer
