#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/catalog.h"
#include "storage/documents.h"
#include "storage/ledger.h"
#include "storage/shard.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/checkpoints/save_word.h"

namespace everstep::trainer {

// What a writer must know about its run.
struct WriterSetup {
  std::string job;
  std::uint64_t lineage = 0;
  Generation generation;
  int rank = 0;     // worker 0 tells the history of windows
  int threads = 1;  // for files
  ModelConfig model;
  Accumulation accumulation = Accumulation::kFloat;
};

// What so many windows of so many minibatches take at most as text in one document, and how much of it is allowed: a
// document that is written must be readable.
std::uint64_t largest_history_bytes(std::int64_t windows, std::int64_t minibatches);
inline constexpr std::uint64_t kLargestHistory = storage::kLargestDocument / 4 * 3;

// What finish() returns if the last cut was not saved. The training itself is not affected by it.
Error last_save_failed();

// Writes one worker's part of checkpoints on a thread of its own: the files, then the shard document that names them,
// then word to whoever commits, whose verdict it waits for before it is idle again. A file of the checkpoint committed
// last by this run is named again instead of written if it holds the same version. Files of an abandoned save are
// removed, so that a full disk does not fill further with every try.
class CheckpointWriter final : public CheckpointSink {
 public:
  using Tell = std::function<void(const SaveWord&)>;

  // The ports are of the job's directory; they and `tell` must be fit for any thread.
  CheckpointWriter(WriterSetup setup, storage::CatalogPorts ports, Tell tell);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  // Breaks off whatever is being written, and waits for no verdict.
  ~CheckpointWriter() override;

  bool idle() override;
  void save(StagedCut cut) override;
  void skipped(Position position) override;
  Status finish() override;

  // From any thread: saves nothing more and waits for no verdict; finish() returns kCancelled.
  void break_off();

  // What was handed over and no checkpoint has committed, as far as this writer knows.
  std::vector<WindowHistory> uncommitted();

  // From any thread. A verdict about another checkpoint than the one at hand is ignored.
  void take(const Verdict& verdict);

 private:
  enum class Stage { kIdle, kWriting, kAwaitingVerdict };

  void run();
  void save_part(const StagedCut& cut);
  Status check_history() const;
  Result<storage::WriterTag> write(const StagedCut& cut);
  Result<std::vector<storage::FileRecord>> write_files(const StagedCut& cut);
  storage::Shard shard_of(const StagedCut& cut, std::vector<storage::FileRecord> files);
  const storage::FileRecord* reusable(const storage::FileRecord& wanted) const;
  std::optional<Verdict::Kind> await_verdict();
  void conclude(Verdict::Kind verdict);
  void remove_files(const storage::CheckpointName& name);
  bool is_broken_off();
  storage::WriterTag new_tag() const;

  const WriterSetup setup_;
  storage::CatalogPorts ports_;
  const Tell tell_;
  const std::uint32_t author_;

  // Of the writing thread alone.
  std::optional<storage::CheckpointName> predecessor_;  // committed last, by this run
  std::vector<storage::FileRecord> predecessor_files_;  // this worker's, by block and kind
  std::vector<storage::FileRecord> files_;              // of the save at hand, complete
  std::vector<std::string> written_;                    // their paths, and those of files that came to nothing

  std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::kIdle;
  std::optional<StagedCut> cut_;
  storage::CheckpointName name_;        // of the save at hand
  std::vector<WindowHistory> history_;  // not committed yet; does not change while a save is at hand
  std::optional<Verdict::Kind> verdict_;
  Status last_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace everstep::trainer
