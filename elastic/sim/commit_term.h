#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tick.h"
#include "elastic/brain/head_commit.h"
#include "elastic/records.h"
#include "elastic/sim/checkpoint_files.h"

namespace everstep::elastic::sim {

class Process;

// Commits for one generation under one leadership: on a thread of its own, with the steps and in the order of the
// product's catalog.
class CommitTerm : public std::enable_shared_from_this<CommitTerm> {
 public:
  struct Right {
    Revision generation = 0;
    Revision leader = 0;
  };
  struct Verdict {
    CheckpointName name;
    bool is_committed = false;
  };

  CommitTerm(Process& process, GenerationRecord generation, Right right, std::optional<HeadDocument> found);

  const GenerationRecord& generation() const { return generation_; }
  const Right& right() const { return right_; }

  // A worker's acknowledgement.
  void take(const CheckpointName& name, int rank, const AckRecord& ack);

  std::vector<Verdict> untold;

 private:
  struct Collection {
    CheckpointName name;
    std::map<int, std::string> shards;  // by rank
  };
  struct Attempted {  // a checkpoint on its way to HEAD
    Collection parts;
    Manifest manifest;
    HeadDocument head;
    std::optional<HeadDocument> replaced;
    std::optional<HeadCommit> commit;
    Tick give_up = 0;
  };
  using Then = std::function<void(const Result<std::optional<KeyValue>>&)>;

  void later(Tick delay, std::function<void()> action);
  void read_head(Then then);
  void start(Collection parts);
  void assemble(const Collection& parts);
  void survey(const std::shared_ptr<Attempted>& next);
  void write_manifest(const std::shared_ptr<Attempted>& next, int part);
  void advance(const std::shared_ptr<Attempted>& next);
  void send_commit(const std::shared_ptr<Attempted>& next);
  void conclude(const std::shared_ptr<Attempted>& next);
  void fail(const std::shared_ptr<Attempted>& next, bool is_overtaken);
  void give_up(const CheckpointName& name);
  void keep_record(const HeadDocument& head);
  void clean_up(const std::shared_ptr<Attempted>& next);
  void remove(std::vector<std::string> paths);
  std::vector<HeadDocument> records() const;  // of committed checkpoints, newest first
  std::vector<std::string> what_may_go(const HeadDocument& newest) const;
  void next_in_line();

  Process& process_;
  const GenerationRecord generation_;
  const Right right_;
  const std::string committer_;
  std::optional<HeadDocument> found_;   // HEAD as it was when the term began
  std::optional<HeadDocument> parent_;  // what the next one descends from
  std::optional<Collection> collection_;
  std::vector<Collection> waiting_;
  std::optional<Verdict> concluded_;
  bool is_working_ = false;
  bool is_overtaken_ = false;
};

}  // namespace everstep::elastic::sim
