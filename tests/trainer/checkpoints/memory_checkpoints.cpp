#include "tests/trainer/checkpoints/memory_checkpoints.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/checkpoints/state_tensors.h"

namespace everstep::trainer {
namespace {

TensorKey key_of(const storage::WantedTensor& stored) {
  return {stored.block, static_cast<int>(stored.kind), stored.tensor.name};
}

std::string describe(const TensorKey& key) {
  return std::string(to_string(static_cast<storage::StateKind>(key.kind))) + " of block " + std::to_string(key.block) +
         ", " + key.name;
}

}  // namespace

bool MemoryCheckpoint::has(storage::StateKind wanted) const {
  return std::ranges::any_of(tensors, [&](const auto& each) { return each.first.kind == static_cast<int>(wanted); });
}

void MemoryCheckpoint::drop(storage::StateKind dropped) {
  for (auto& [key, bytes] : tensors) {
    if (key.kind == static_cast<int>(dropped)) std::fill(bytes.begin(), bytes.end(), '\0');
  }
}

class MemoryCheckpoints::Sink final : public CheckpointSink {
 public:
  Sink(MemoryCheckpoints& store, int worker, std::function<bool()> busy)
      : store_(store), worker_(worker), busy_(std::move(busy)) {}

  bool idle() override { return !busy_ || !busy_(); }
  void save(StagedCut cut) override {
    wait_for(cut.is_here);
    store_.add(worker_, cut);
  }
  void skipped(Position) override { ++store_.skipped_[worker_]; }
  Status finish() override { return {}; }

 private:
  MemoryCheckpoints& store_;
  int worker_;
  std::function<bool()> busy_;
};

MemoryCheckpoints::MemoryCheckpoints(const TrainOptions& options)
    : options_(options),
      sinks_(options.schedule.depth * options.schedule.width),
      skipped_(options.schedule.depth * options.schedule.width, 0) {}

void MemoryCheckpoints::save_here(int worker, TrainHooks& hooks, std::function<bool()> busy) {
  sinks_[worker] = std::make_unique<Sink>(*this, worker, std::move(busy));
  hooks.checkpoints = sinks_[worker].get();
}

void MemoryCheckpoints::add(int worker, const StagedCut& cut) {
  const std::lock_guard lock(mutex_);
  Parts& parts = parts_[{cut.position.value, cut.nonce}];
  ++parts.workers;
  parts.usable = parts.usable && cut.usable;
  MemoryCheckpoint& joined = parts.joined;
  joined.kind = cut.kind;
  joined.position = cut.position;
  joined.version = cut.version;
  joined.applied = cut.applied;
  joined.clip_scale = cut.clip_scale;
  joined.validation_loss = cut.validation_loss;
  if (worker == 0) joined.history = cut.history;
  joined.losses.insert(joined.losses.end(), cut.losses.begin(), cut.losses.end());
  std::sort(joined.losses.begin(), joined.losses.end(),
            [](const MinibatchLoss& a, const MinibatchLoss& b) { return a.minibatch < b.minibatch; });
  for (const storage::BlockState& file : block_states(options_.model, options_.accumulation, cut, {})) {
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const storage::WantedTensor stored{file.record.block, file.record.kind, file.record.tensors[i]};
      const auto& bytes = file.tensors[i];
      const bool is_new =
          joined.tensors.emplace(key_of(stored), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))
              .second;
      EVERSTEP_CHECK(is_new, "two workers wrote " + describe(key_of(stored)));
    }
  }
}

std::vector<MemoryCheckpoint> MemoryCheckpoints::complete() const {
  std::vector<MemoryCheckpoint> all;
  for (const auto& [key, parts] : parts_) {
    if (parts.workers == static_cast<int>(sinks_.size()) && parts.usable) all.push_back(parts.joined);
  }
  return all;
}

std::vector<int> MemoryCheckpoints::skipped() const { return skipped_; }

TrainOptions resumed(TrainOptions options, const MemoryCheckpoint& checkpoint, bool continues_live) {
  ResumePoint& resume = options.resume.emplace();
  resume.position = checkpoint.position;
  resume.version = checkpoint.version;
  resume.applied = checkpoint.applied;
  resume.clip_scale = checkpoint.clip_scale;
  resume.continues_live = continues_live;
  resume.continues_provisional = continues_live && checkpoint.has(storage::StateKind::kProvisional);
  resume.losses = checkpoint.losses;
  options.generation = options.generation.next();
  return options;
}

void restore_from(const MemoryCheckpoint& checkpoint, const TrainOptions& options, TrainHooks& hooks) {
  hooks.restore = [&checkpoint, model = options.model, accumulation = options.accumulation](
                      const StageLayout& layout, const StageState& state) -> Status {
    for (const StateTensor& tensor : state_tensors(model, accumulation, layout, state)) {
      const auto stored = checkpoint.tensors.find(key_of(tensor.stored));
      if (stored == checkpoint.tensors.end()) return not_found(describe(key_of(tensor.stored)) + " is missing");
      EVERSTEP_CHECK(stored->second.size() == tensor.bytes.size(), "a stored tensor of another size");
      std::memcpy(tensor.bytes.data(), stored->second.data(), stored->second.size());
    }
    return {};
  };
}

std::string difference_between(const MemoryCheckpoint& expected, const MemoryCheckpoint& other) {
  if (expected.position != other.position || expected.version != other.version || expected.applied != other.applied) {
    return "positions, versions or updates differ";
  }
  if (expected.losses != other.losses) return "losses of the unfinished window differ";
  for (const auto& [key, bytes] : expected.tensors) {
    const auto found = other.tensors.find(key);
    if (found == other.tensors.end()) return describe(key) + " is missing";
    if (found->second != bytes) return describe(key) + " differs";
  }
  return expected.tensors.size() == other.tensors.size() ? "" : "there are more tensors than expected";
}

}  // namespace everstep::trainer
