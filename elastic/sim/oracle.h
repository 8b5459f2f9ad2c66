#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elastic/kv_store.h"
#include "elastic/records.h"
#include "elastic/sim/checkpoint_files.h"
#include "elastic/sim/stand_in.h"

namespace everstep::elastic::sim {

class World;

// Sees every change of the store as it happens, and the disk, and knows what must hold whatever went wrong:
//   BITS     the state of every HEAD is that of the reference
//   ONCE     along `parent` every minibatch is consumed exactly once, in order
//   CHAIN    HEADs link, positions grow along `parent`, committers of a generation follow each other, a generation's
//            origin is not behind HEAD
//   RESTORE  what HEAD names is durable, and so is what retention keeps
//   MEMORY   as long as no more workers are lost at once than the plan's copies allow for, a generation starts at most
//   one
//            window before the newest update that a survivor made
//   FENCE    nothing of an older generation takes effect once there is a newer one
class Oracle {
 public:
  explicit Oracle(World& world);

  // What a transaction is about to change; given back to check() once it has succeeded.
  struct Before {
    std::optional<KeyValue> generation;
    std::optional<KeyValue> head;
    std::optional<KeyValue> leader;
    std::vector<KeyValue> held;
    bool is_known = false;
  };
  Before look(const Txn& txn);
  void check(const Txn& txn, const Before& before);

  // Whether all that retention keeps can be read after a power cut now.
  void check_retained();

  void on_damage(const CheckpointName& name) { damaged_.insert(name); }
  // What the disk tells of the jobs before.
  struct Traces {
    Generation generation;
    std::int64_t sequence = 0;
  };
  // An operator opened a new job from this checkpoint (nothing: from the beginning), whose numbers come after those
  // that left traces.
  void on_resume(const std::optional<HeadDocument>& from, const Traces& traces);

  // While the store is not the job's, and while an operator writes keys.
  void pause(bool is_paused) { is_paused_ = is_paused; }

  const std::optional<HeadDocument>& head() const { return head_; }
  std::int64_t commits() const { return commits_; }
  std::int64_t generations() const { return generations_; }
  std::int64_t fallbacks() const { return fallbacks_; }
  std::int64_t recoveries() const { return recoveries_; }                  // from copies, or what a group kept
  std::int64_t group_stops() const { return group_stops_; }                // of these the latter
  std::int64_t shared_generations() const { return shared_generations_; }  // with more than one committer

 private:
  void check_put(const KvOp& op, const Before& before);
  void check_head(const KvOp& op, const Before& before);
  void check_links(const HeadDocument& head);
  void check_committer(const HeadDocument& head);
  void check_content(const HeadDocument& head);
  void check_generation(const KvOp& op, const Before& before);
  void check_memory(const GenerationRecord& next, const Before& before);
  void check_ack(const KvOp& op, const Before& before);
  void check_deposal(const Txn& txn, const Before& before);
  void violated(const std::string& oracle, const std::string& what);

  World& world_;
  Reference reference_;
  std::optional<HeadDocument> head_;
  std::map<std::string, HeadDocument> by_manifest_;
  std::map<Generation, std::vector<std::string>> committers_;
  std::set<CheckpointName> damaged_;
  Generation newest_generation_;
  std::int64_t highest_sequence_ = 0;
  bool has_resumed_ = false;
  bool is_paused_ = false;
  std::int64_t commits_ = 0;
  std::int64_t generations_ = 0;
  std::int64_t fallbacks_ = 0;
  std::int64_t recoveries_ = 0;
  std::int64_t group_stops_ = 0;
  std::int64_t shared_generations_ = 0;
};

}  // namespace everstep::elastic::sim
