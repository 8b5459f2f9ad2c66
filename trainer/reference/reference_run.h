#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "scheduler/plan.h"
#include "trainer/loop/train_loop.h"
#include "trainer/reference/reference_optimizer.h"
#include "trainer/reference/used_versions.h"

namespace everstep::trainer {

// A range of minibatches of one window as history tells it: the ledger's entries, in their order.
struct HistoryEntry {
  std::int64_t window = 0;
  int first = 0;  // minibatches [first, end)
  int end = 0;
  Generation generation;
  scheduler::Plan plan;
  bool flushed = false;         // the window began on a drained pipeline
  bool skipped = false;         // its update was not applied
  std::vector<int> left_out{};  // minibatches that were not run: their loss is 0, and they add nothing
  double norm_limit = 0;        // skipped because its gradient's norm was above this; 0: because it was not finite
  bool provisional = false;     // until the update before, the window ran on provisional weights
};

// What a range of minibatches came to.
struct ReferenceStep {
  struct Update {
    double loss = 0;  // mean over the window
    double gradient_norm = 0;
    bool skipped = false;  // because history says so, or because they are not finite
    bool finite = true;    // loss and gradient, as they came out here
  };

  std::vector<double> losses;    // one per minibatch
  std::optional<Update> update;  // if the window ended
};

// The reference executor: re-runs a history in one process and one thread, minibatch after minibatch, the whole model
// block by block, written to be believed at first sight. It shares the blocks' code, the data and the version table
// with the executor, and nothing else: no transport, no lists of ops, no reduction, no vector code. With fixed-point
// sums its bits are those of every run with that history; with float sums its numbers are close to them.
class ReferenceRun {
 public:
  // Of the options model, accumulation, stash, adam and learning_rate count, of the hooks make_stage,
  // initialise_weights, initialise_master and device. Starts with the initial weights. With a device the blocks' code
  // runs there, on copies; all else, updates included, is done on the host.
  ReferenceRun(TrainOptions options, const DataSource& data, const TrainHooks& hooks);

  // Entries must follow each other without a gap. kInvalidArgument: this cannot be a history, and why.
  Result<ReferenceStep> run(const HistoryEntry& entry);

  // Takes note of an entry without running it, on the way to where a checkpoint's state is put in place.
  Status pass_over(const HistoryEntry& entry);

  // State was written into the buffers of state(): training goes on from there. Not before every entry up to there was
  // passed over.
  void resume(const ResumePoint& point);

  // For the windows that follow.
  void set_learning_rate(const LearningRate& schedule) { options_.learning_rate = schedule; }

  // The mean loss over the first minibatches of the validation split, without dropout.
  Result<double> evaluate(std::int64_t minibatches);

  Position position() const { return position_; }
  std::int64_t applied() const { return applied_; }
  double clip_scale() const { return clip_scale_; }  // of the last update; 1 if it was skipped
  int blocks() const { return static_cast<int>(blocks_.size()); }
  const StageLayout& layout(int block) const { return blocks_[block].layout; }

  // All there is of a block, on the host: the very bytes.
  StageState state(int block) const;

 private:
  struct Block {
    StageLayout layout;
    ChunkMemory memory;       // what `compute` works on: one buffer for the gradients of both parities, on the host
                              // that of `state`
    std::int64_t loaded = 0;  // what is in memory.weights: twice its version, and one more where it is provisional
    std::unique_ptr<StageCompute> compute;
    StageState state;
    Buffer next_provisional;  // for the window that follows, while the one at hand may still read its own
  };

  // What one generation ran of a window.
  struct Part {
    std::int64_t window = 0;
    Generation generation;
    scheduler::Plan plan;
    WindowStart start;
    int end = 0;  // of its last range so far
  };

  Status begin(const HistoryEntry& entry);
  Result<WindowStart> start_of(const HistoryEntry& entry) const;
  Result<const WindowVersions*> versions_of(const scheduler::Plan& plan);
  Result<double> train_minibatch(int minibatch, const WindowVersions& versions);
  Status use(Block& block, int lag);
  void step_provisionally(int summed);
  void put(const Buffer& to, const Buffer& from);
  void fetch_gradients();
  ReferenceStep::Update update(bool skipped);
  std::vector<ReferenceParameter> parameters() const;
  std::vector<float> gradient_of_entry(const Block& block, const StageLayout::Entry& entry) const;
  void apply(std::vector<ReferenceParameter>& parameters, double gradient_norm);

  TrainOptions options_;
  const DataSource& data_;
  DeviceMemory& memory_;
  std::vector<Block> blocks_;
  std::map<std::pair<std::string, WindowStart>, WindowVersions> known_versions_;

  Position position_;
  std::int64_t version_ = 0;
  std::int64_t applied_ = 0;
  double clip_scale_ = 1;
  bool has_previous_ = false;          // the weights one version before
  std::int64_t provisional_for_ = -1;  // the window for which there are provisional weights
  bool has_next_provisional_ = false;  // there are some for the one behind the window at hand
  bool uses_provisional_ = false;      // the window at hand does
  double window_loss_ = 0;             // summed so far
  std::vector<Part> parts_;            // of the window at hand and the one before, the last to begin at the end
  WindowStart start_;                  // of the part at hand
  int window_size_ = 1;
};

}  // namespace everstep::trainer
