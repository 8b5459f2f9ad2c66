#include "trainer/checkpoints/checkpoint_writer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "trainer/checkpoints/caught.h"
#include "trainer/checkpoints/parallel.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::trainer {
namespace {

using storage::FileRecord;
using storage::StateKind;
using Clock = std::chrono::steady_clock;

storage::CheckpointName name_of(const StagedCut& cut, Generation generation) {
  return {generation, cut.position, cut.nonce};
}

storage::LedgerEntry entry_of(const WindowHistory& window) {
  storage::LedgerEntry entry;
  entry.window = window.window;
  entry.first = window.first;
  entry.end = window.end;
  entry.generation = window.generation;
  entry.plan = window.plan;
  entry.flushed = window.flushed;
  entry.skipped = window.skipped;
  entry.losses = window.losses;
  entry.left_out = window.left_out;
  entry.norm_limit = window.norm_limit;
  entry.provisional = window.provisional;
  return entry;
}

Status status_of(Verdict::Kind verdict) {
  return verdict == Verdict::Kind::kCommitted ? Status() : Status(last_save_failed());
}

}  // namespace

std::uint64_t largest_history_bytes(std::int64_t windows, std::int64_t minibatches) {
  constexpr std::uint64_t kPerWindow = 1184;  // names, numbers and the plan's text
  constexpr std::uint64_t kPerLoss = 40;      // indentation, sign, 17 digits, exponent, comma
  return static_cast<std::uint64_t>(windows) * kPerWindow + static_cast<std::uint64_t>(minibatches) * kPerLoss;
}

Error last_save_failed() {
  return {ErrorCode::kUnavailable, "the last checkpoint was not committed", "the supervisor's log says why"};
}

CheckpointWriter::CheckpointWriter(WriterSetup setup, storage::CatalogPorts ports, Tell tell)
    : setup_(std::move(setup)), ports_(ports), tell_(std::move(tell)), author_(std::random_device{}()), thread_([this] {
        run();
      }) {}

CheckpointWriter::~CheckpointWriter() {
  break_off();
  thread_.join();
}

void CheckpointWriter::break_off() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

bool CheckpointWriter::idle() {
  const std::scoped_lock lock(mutex_);
  return stage_ == Stage::kIdle;
}

void CheckpointWriter::save(StagedCut cut) {
  {
    const std::scoped_lock lock(mutex_);
    EVERSTEP_CHECK(stage_ == Stage::kIdle, "a cut is handed over to an idle writer");
    stage_ = Stage::kWriting;
    name_ = name_of(cut, setup_.generation);
    verdict_.reset();
    history_.insert(history_.end(), cut.history.begin(), cut.history.end());
    cut_ = std::move(cut);
  }
  changed_.notify_all();
}

void CheckpointWriter::skipped(Position position) {
  if (setup_.rank == 0) tell_(SaveSkipped{position});
}

Status CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ == Stage::kIdle || closing_; });
  if (stage_ != Stage::kIdle) return Error{ErrorCode::kCancelled, "the save was broken off", ""};
  return last_;
}

void CheckpointWriter::take(const Verdict& verdict) {
  {
    const std::scoped_lock lock(mutex_);
    // The first word stands: a leader that follows may know less than the one that committed.
    if (stage_ == Stage::kIdle || verdict.checkpoint != name_ || verdict_) return;
    verdict_ = verdict.kind;
  }
  changed_.notify_all();
}

void CheckpointWriter::run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || cut_; });
    if (closing_) return;
    // Its buffers are in use until the stage is idle again.
    const StagedCut cut = *std::move(cut_);
    cut_.reset();
    lock.unlock();
    save_part(cut);
    const auto verdict = await_verdict();
    if (!verdict) return;
    conclude(*verdict);
  }
}

// Another worker may have failed meanwhile: then there is a verdict already, and nothing to tell.
void CheckpointWriter::save_part(const StagedCut& cut) {
  const auto start = Clock::now();
  wait_for(cut.is_here);
  const storage::CheckpointName name = name_of(cut, setup_.generation);
  const auto shard = caught([&] { return write(cut); });
  {
    const std::scoped_lock lock(mutex_);
    stage_ = Stage::kAwaitingVerdict;
    if (verdict_ || closing_) return;
  }
  if (shard) {
    tell_(ShardSaved{name, *shard, std::chrono::duration<double>(Clock::now() - start).count()});
  } else {
    tell_(SaveFailed{name, shard.error()});
  }
}

std::vector<WindowHistory> CheckpointWriter::uncommitted() {
  const std::scoped_lock lock(mutex_);
  return history_;
}

Status CheckpointWriter::check_history() const {
  std::int64_t minibatches = 0;
  for (const WindowHistory& entry : history_) minibatches += std::ssize(entry.losses);
  if (largest_history_bytes(std::ssize(history_), minibatches) <= kLargestHistory) return {};
  return Error{
      ErrorCode::kUnavailable,
      "the losses of " + std::to_string(history_.size()) + " windows since the last checkpoint do not fit into one",
      "this run cannot save any more: resume from its last checkpoint"};
}

Result<storage::WriterTag> CheckpointWriter::write(const StagedCut& cut) {
  if (!cut.usable) {
    return Error{ErrorCode::kUnavailable, "a gradient of the window could not be represented", "the next one will do"};
  }
  EVERSTEP_TRY(check_history());
  const storage::CheckpointName name = name_of(cut, setup_.generation);
  const std::string directory = storage::directory_of(setup_.lineage, name);
  EVERSTEP_TRY(storage::Catalog(ports_).make_directory(setup_.lineage, name));
  auto files = write_files(cut);
  if (!files) return files.error();
  EVERSTEP_TRY(ports_.files.files.sync_directory(directory));
  const storage::Shard shard = shard_of(cut, std::move(files).value());
  const storage::WriterTag tag = new_tag();
  const std::string path = storage::shard_path(setup_.lineage, shard.name, tag);
  written_.push_back(path);
  EVERSTEP_TRY(storage::write_text(ports_.files.files, path, ports_.seal.seal(ports_.documents.encode(shard))));
  EVERSTEP_TRY(ports_.files.files.sync_directory(directory));
  files_ = shard.files;
  return tag;
}

Result<std::vector<FileRecord>> CheckpointWriter::write_files(const StagedCut& cut) {
  std::vector<storage::BlockState> states = block_states(setup_.model, setup_.accumulation, cut, setup_.generation);
  std::vector<FileRecord> records;
  std::vector<storage::BlockState> to_write;
  for (storage::BlockState& state : states) {
    if (const FileRecord* earlier = reusable(state.record)) {
      records.push_back(*earlier);
      continue;
    }
    state.record.writer = new_tag();
    written_.push_back(storage::path_of(setup_.lineage, state.record));
    to_write.push_back(std::move(state));
  }
  std::vector<FileRecord> fresh(to_write.size());
  EVERSTEP_TRY(for_each_in_parallel(to_write.size(), setup_.threads, [&](std::size_t i) -> Status {
    auto record = storage::write_block_file(ports_.files, setup_.job, setup_.lineage, to_write[i],
                                            [this] { return is_broken_off(); });
    if (!record) return record.error();
    fresh[i] = std::move(record).value();
    return {};
  }));
  std::move(fresh.begin(), fresh.end(), std::back_inserter(records));
  std::sort(records.begin(), records.end(), storage::comes_before);
  return records;
}

storage::Shard CheckpointWriter::shard_of(const StagedCut& cut, std::vector<FileRecord> files) {
  storage::Shard shard;
  shard.job = setup_.job;
  shard.lineage = setup_.lineage;
  shard.name = name_of(cut, setup_.generation);
  shard.version = cut.version;
  shard.applied = cut.applied;
  shard.clip_scale = cut.clip_scale;
  shard.began_drained = cut.began_drained;
  shard.began_provisional = cut.began_provisional;
  shard.validation_loss = cut.validation_loss;
  shard.files = std::move(files);
  for (const MinibatchLoss& loss : cut.losses) shard.window_losses.push_back({loss.minibatch, loss.loss});
  std::sort(shard.window_losses.begin(), shard.window_losses.end(),
            [](const auto& a, const auto& b) { return a.minibatch < b.minibatch; });
  if (setup_.rank == 0) std::transform(history_.begin(), history_.end(), std::back_inserter(shard.history), entry_of);
  return shard;
}

// Only a file that the direct predecessor wrote itself: clean-up may take all others.
const FileRecord* CheckpointWriter::reusable(const FileRecord& wanted) const {
  if (!predecessor_ || (wanted.kind != StateKind::kWeights && wanted.kind != StateKind::kOptimizer)) return nullptr;
  const auto found = std::find_if(predecessor_files_.begin(), predecessor_files_.end(), [&](const FileRecord& file) {
    return file.block == wanted.block && file.kind == wanted.kind;
  });
  if (found == predecessor_files_.end()) return nullptr;
  const bool is_same = found->version == wanted.version && found->tensors == wanted.tensors;
  return is_same && found->written_by == *predecessor_ ? &*found : nullptr;
}

std::optional<Verdict::Kind> CheckpointWriter::await_verdict() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closing_ || verdict_; });
  return closing_ ? std::nullopt : verdict_;
}

void CheckpointWriter::conclude(Verdict::Kind verdict) {
  if (verdict == Verdict::Kind::kCommitted) {
    predecessor_ = name_;
    predecessor_files_ = std::exchange(files_, {});
  } else if (verdict == Verdict::Kind::kAbandoned) {
    static_cast<void>(caught([this]() -> Status {
      remove_files(name_);
      return {};
    }));
  } else {
    predecessor_.reset();
  }
  written_.clear();
  {
    const std::scoped_lock lock(mutex_);
    if (verdict == Verdict::Kind::kCommitted) history_.clear();
    last_ = status_of(verdict);
    stage_ = Stage::kIdle;
  }
  changed_.notify_all();
}

// What cannot be removed is an orphan, which a later run's clean-up takes. The last worker to come here removes the
// directory.
void CheckpointWriter::remove_files(const storage::CheckpointName& name) {
  for (const std::string& path : written_) static_cast<void>(ports_.files.files.remove(path));
  static_cast<void>(ports_.files.files.remove_directory(storage::directory_of(setup_.lineage, name)));
}

bool CheckpointWriter::is_broken_off() {
  const std::scoped_lock lock(mutex_);
  return closing_ || verdict_.has_value();
}

storage::WriterTag CheckpointWriter::new_tag() const { return {author_, std::random_device{}()}; }

}  // namespace everstep::trainer
