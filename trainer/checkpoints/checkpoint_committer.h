#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "storage/catalog.h"
#include "trainer/checkpoints/commit_assembly.h"
#include "trainer/checkpoints/save_word.h"

namespace everstep::trainer {

struct CheckpointCounts {
  std::int64_t saved = 0;
  std::int64_t skipped = 0;
  std::int64_t failed = 0;
  std::optional<std::int64_t> last_step;  // saved last, by this run

  bool operator==(const CheckpointCounts&) const = default;
};

// The loss curve of a job, kept beside its checkpoints. Called by the committer's thread.
class CurveSink {
 public:
  virtual ~CurveSink() = default;

  // Brings the curve to `newest`, if that is HEAD; does nothing if it is not. `committed` is the ledger segment that
  // came with it, if it was committed just now. After a failure the next call makes up for it.
  virtual Status follow(const storage::CatalogPorts& ports, const storage::CatalogEntry& newest,
                        const storage::LedgerSegment* committed) = 0;
};

// What a worker computes with, for the provenance of checkpoints.
struct Libraries {
  storage::Settings settings;
};

// Makes checkpoints of what the workers wrote: once all have told of their shards it commits, removes what retention
// lets go, and tells its verdict. One that a worker could not write is abandoned; the next one is tried. It works on a
// thread of its own, because a disk may take seconds; what it says is fetched by the supervisor's loop.
class CheckpointCommitter {
 public:
  // `parent` is what the run resumed from. `curve` is kept up with what is committed; nullptr: none is. The ports must
  // be fit for another thread and outlive this, and so must the curve.
  CheckpointCommitter(RunFacts run, int workers, storage::RetentionOptions retention, storage::CatalogPorts ports,
                      std::optional<storage::CatalogEntry> parent, CurveSink* curve = nullptr);
  CheckpointCommitter(const CheckpointCommitter&) = delete;
  CheckpointCommitter& operator=(const CheckpointCommitter&) = delete;
  // Concludes what it was told: a checkpoint whose shards are all durable is committed even if a worker died since.
  ~CheckpointCommitter();

  // What workers said. Never waits.
  using FromRank = std::variant<Libraries, ShardSaved, SaveFailed, SaveSkipped>;
  void take(int rank, FromRank message);

  struct News {
    std::optional<Verdict> verdict;  // for all workers
    std::string event;               // for the log; may be empty
  };

  int fd() const { return fd_; }  // readable while there are news
  std::vector<News> take_news();  // never waits

  // Waits until all that it was told is concluded.
  void finish();

  CheckpointCounts counts() const;
  Status last() const;  // what became of the last checkpoint that was tried

 private:
  struct Collection {
    storage::CheckpointName name;
    std::vector<std::optional<storage::WriterTag>> shards;  // by rank
    double seconds = 0;                                     // of the slowest worker
  };

  void run();
  bool answer_again(const storage::CheckpointName& name);
  void answer_after(const FromRank& message, const Error& error);
  void handle(int rank, const Libraries& libraries);
  void handle(int rank, const ShardSaved& saved);
  void handle(int rank, const SaveFailed& failed);
  void handle(int rank, const SaveSkipped& skipped);

  void commit(const Collection& complete);
  struct Committed {
    storage::CatalogEntry entry;
    storage::LedgerSegment ledger;
  };
  Result<Committed> try_commit(const Collection& complete);
  void remove_documents(const storage::CheckpointName& name, const storage::WriterTag& writer);
  Result<std::vector<storage::Shard>> read_shards(const Collection& complete) const;
  void conclude(const Collection& complete, Committed committed, double seconds);
  void give_up(const storage::CheckpointName& name, const Error& error, Verdict::Kind verdict);
  void clean_up(const Collection& complete);
  void keep_curve(const storage::LedgerSegment* committed);
  void publish(News news);
  static std::string event_of(const storage::Manifest& manifest, double seconds);

  // Of its own thread alone.
  RunFacts run_;
  const int workers_;
  const storage::RetentionOptions retention_;
  storage::CatalogPorts ports_;
  storage::Catalog catalog_;
  std::optional<storage::CatalogEntry> parent_;
  CurveSink* const curve_;
  std::optional<Collection> collection_;
  std::optional<Verdict> concluded_;  // the last one
  std::optional<Error> overtaken_;    // another run commits to this job: this one saves no more
  bool has_told_libraries_ = false;
  const std::uint32_t author_;

  const int fd_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int, FromRank>> mailbox_;
  bool is_working_ = false;
  bool is_closing_ = false;
  std::vector<News> news_;
  CheckpointCounts counts_;
  Status last_;
  std::thread thread_;
};

}  // namespace everstep::trainer
