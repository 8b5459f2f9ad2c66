#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/tick.h"
#include "elastic/anomaly_records.h"
#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "scheduler/plan.h"

namespace everstep::elastic {

bool has(const std::vector<WorkerId>& ids, const WorkerId& id);

// The values of the job's keys. Their text form is lines of "name value" and a last line "end", so that etcdctl shows
// them to people. parse_… refuses (kDataLoss) whatever to_text would not have made, within fixed bounds; text comes
// from other processes.

// What all workers of a job must agree on. Written once, by whoever starts the job.
struct JobSpec {
  std::uint64_t lineage = 0;
  std::uint64_t creation = 0;  // random: a job that is started again on the same lineage is another one
  std::string build;           // of the program: workers of another one are refused
  std::string data_hash;       // of what the job trains on; empty: emulated
  std::vector<std::pair<std::string, std::string>> settings;  // the configuration in force, names ascending

  bool operator==(const JobSpec&) const = default;
};
std::string to_text(const JobSpec& spec);
Result<JobSpec> parse_job_spec(std::string_view text);

enum class MemberState : std::uint8_t {
  kWarming,  // loads code and data
  kReady,    // may be named by a generation
  kLeaving,  // wants to be drained
};

struct MemberRecord {
  WorkerId id;
  std::string name;     // for people: unique among the living as far as they can tell
  std::string host;     // workers on one host are lost together
  std::string address;  // where peers connect: "10.0.0.7:4711 unix=…", which only those who connect understand
  MemberState state = MemberState::kWarming;
  std::string leave_reason;   // kLeaving
  std::int64_t leave_ms = 0;  // kLeaving: how long it can still stay, as of when this was written; 0: as long as needed

  bool operator==(const MemberRecord&) const = default;
};
std::string to_text(const MemberRecord& member);
Result<MemberRecord> parse_member(std::string_view text);

struct LeaderRecord {
  WorkerId id;
  Revision registered = 0;  // when its member key was created: put back after the member has gone, it fits no other

  bool operator==(const LeaderRecord&) const = default;
};
std::string to_text(const LeaderRecord& leader);
Result<LeaderRecord> parse_leader(std::string_view text);

// The newest committed checkpoint. `document` is storage's own record of it, which only storage reads.
struct HeadRecord {
  std::int64_t sequence = 0;
  Generation generation;
  Position position;
  std::string manifest;  // SHA-256, 64 digits
  std::string document;

  bool operator==(const HeadRecord&) const = default;
};
std::string to_text(const HeadRecord& head);
Result<HeadRecord> parse_head_record(std::string_view text);

// What a generation starts from.
struct Origin {
  enum class Kind : std::uint8_t {
    kBeginning,   // initial weights
    kCheckpoint,  // HEAD, as it was when the generation was opened
    kMemory,      // what members of `from` hold since they stopped in order, at `position`
    kCopies,      // copies of owner state at a window's end, at `position`, put together from `holders`
    kSums,        // what one group of `from` kept after a loss in another: the state at `position`, a window's start,
                  // with the sums of what it had run of that window
  };

  Kind kind = Kind::kBeginning;
  Position position;
  std::string manifest{};  // kCheckpoint
  int group = 0;           // kSums: which
  int rounds = 0;          // kSums: so many super-rounds of the window

  bool operator==(const Origin&) const = default;
};

// Who connects to whom: the workers of a plan, then those that only hand their state over and leave.
struct RosterRecord {
  Attempt attempt;
  scheduler::Plan plan;  // workers and spares by id
  // Hold state of the generation before and do not work in this one: leaving, or from now on spares.
  std::vector<WorkerId> donors;

  // plan.workers, then donors: the order in which the transport numbers them. Spares stand by outside.
  std::vector<WorkerId> connected() const;
  bool names(const WorkerId& id) const;  // as worker, spare or donor

  bool operator==(const RosterRecord&) const = default;
};

// What is being prepared while the present generation trains.
std::string to_text(const RosterRecord& proposal);
Result<RosterRecord> parse_roster(std::string_view text);

// Who has copies of an origin's owner state: complete for all stages that it owns, that it guards, under `from`'s plan.
struct CopyHolder {
  WorkerId id;
  bool owned = false;
  bool guarded = false;

  bool operator==(const CopyHolder&) const = default;
};

struct GenerationRecord {
  RosterRecord roster;
  WorkerId opener;
  Origin origin;
  std::optional<RosterRecord> from;   // kMemory, kCopies, kSums: whose members hold the origin, with its plan
  std::string reason;                 // for people: who came, who left
  std::vector<CopyHolder> holders{};  // kCopies
  std::vector<Position> left_out{};   // minibatches that are not trained on, ascending; not those behind HEAD
  std::optional<AnomalyTrial> trial{};
  Generation heeds_from{};  // requests that were made under an older generation were made of workers that are gone

  bool operator==(const GenerationRecord&) const = default;
};
std::string to_text(const GenerationRecord& generation);
Result<GenerationRecord> parse_generation(std::string_view text);

// Asks the workers of the present generation to stop. In names of stops, round means a super-round of the run.
struct DrainRecord {
  Attempt attempt{};           // of the generation that is to stop
  bool inside_window = false;  // at a super-round, because a window takes too long; else at the window's end
  std::optional<std::int64_t>
      stop_round{};       // inside_window: once all promised. Super-rounds since the generation began
  bool saves = false;     // make a checkpoint at the window's end: too few go on to keep the state in memory
  bool ends_job = false;  // nobody goes on: saves, and all leave
  bool asked = false;     // ends_job: people want it, so whoever was cut off meanwhile leaves too
  std::string reason{};

  bool operator==(const DrainRecord&) const = default;
};
std::string to_text(const DrainRecord& drain);
Result<DrainRecord> parse_drain(std::string_view text);

// Whether a worker could connect to everybody of a proposal.
struct PreparedRecord {
  bool connected = false;
  std::string error;

  bool operator==(const PreparedRecord&) const = default;
};
std::string to_text(const PreparedRecord& prepared);
Result<PreparedRecord> parse_prepared(std::string_view text);

// The highest super-round that a worker has started; it goes at most one further before it knows where to stop.
struct PromiseRecord {
  std::int64_t round = 0;

  bool operator==(const PromiseRecord&) const = default;
};
std::string to_text(const PromiseRecord& promise);
Result<PromiseRecord> parse_promise(std::string_view text);

// Copies of owner state at a window's end, under the plan of that generation.
struct HeldCopy {
  Generation of;
  Position position;
  bool owned = false;    // of all stages that this worker owns there
  bool guarded = false;  // of all that it guards

  bool operator==(const HeldCopy&) const = default;
};

// What a worker's group has after a loss in another one, under the plan of that generation: see Origin::Kind::kSums.
struct HeldSums {
  Generation of;
  Position position;
  int group = 0;
  int rounds = 0;

  bool operator==(const HeldSums&) const = default;
};

// What a worker has in memory after it stopped. Written once it changes no more.
struct HeldRecord {
  bool finished = false;             // the job's last update is made and saved
  std::optional<Position> position;  // nothing: it broke off
  // The generation whose plan says which blocks this worker has there: the one it stopped in, or, if it never came to
  // the first update there, the one that this generation's origin came from.
  std::optional<Generation> of;
  // Two versions of the generation that it stopped in; before the first update there, those of the one before too: a
  // peer may have made that update already and forgotten them.
  std::vector<HeldCopy> copies{};
  std::optional<AnomalyReport> anomaly{};  // why it broke off
  std::optional<HeldSums> sums{};

  bool has_anything() const { return position || finished || !copies.empty() || sums; }
  bool operator==(const HeldRecord&) const = default;
};
std::string to_text(const HeldRecord& held);
Result<HeldRecord> parse_held(std::string_view text);

struct SuspectRecord {
  bool closed = false;  // its connection closed: the process is gone. Else it does not answer
  std::string reason;

  bool operator==(const SuspectRecord&) const = default;
};
std::string to_text(const SuspectRecord& suspect);
Result<SuspectRecord> parse_suspect(std::string_view text);

// One worker's part of a checkpoint: durable, or failed.
struct AckRecord {
  std::string shard;  // names the shard document that describes it; empty: failed
  std::string error;
  double seconds = 0;

  bool operator==(const AckRecord&) const = default;
};
std::string to_text(const AckRecord& ack);
Result<AckRecord> parse_ack(std::string_view text);

struct QuarantineRecord {
  int strikes = 0;
  std::int64_t seconds = 0;  // from when it was written

  bool operator==(const QuarantineRecord&) const = default;
};
std::string to_text(const QuarantineRecord& quarantine);
Result<QuarantineRecord> parse_quarantine(std::string_view text);

// What people ask of a job: that it stops, that one worker leaves, that there are so many local ones.
struct RequestRecord {
  std::uint64_t id = 0;   // random: the same asked twice is two requests
  Generation generation;  // the newest, when it was made; 0: there was none
  std::string reason;     // "everstep stop"
  int workers = 0;        // of ask/scale

  bool operator==(const RequestRecord&) const = default;
};
std::string to_text(const RequestRecord& request);
Result<RequestRecord> parse_request(std::string_view text);

// For people and tools, written by the plan's first worker every now and then. Whoever leads may plan by the speeds in
// it, and by nothing else: it may be old, or gone.
struct ProgressRecord {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss = 0;
  double tokens_per_second = 0;
  double busy = 0;
  double goodput = 1;
  std::string state;               // "training", "draining", "recovering", "waiting for 2 more workers", "finished"
  std::vector<int> computed_us{};  // for the last update, by worker of the plan
  // Medians over so many updates of that generation: of updates, and by worker of the plan, then by the stages that it
  // holds, ascending, of a minibatch there and back (0: not known).
  Generation generation{};
  int updates = 0;
  std::int64_t update_us = 0;
  std::vector<int> stage_us{};
  std::vector<int> slowness_percent{};  // by worker of the plan: 100 is as usual, 0 not known
  std::int64_t switch_ms = 0;           // what the last planned change cost; 0: not known
  // Of the last update, but for the validation, which is the last that was measured.
  double learning_rate = 0;
  double gradient_norm = 0;
  std::optional<double> validation_loss{};
  std::int64_t skipped = 0;  // updates, since the start of training

  bool operator==(const ProgressRecord&) const = default;
};
std::string to_text(const ProgressRecord& progress);
Result<ProgressRecord> parse_progress(std::string_view text);

}  // namespace everstep::elastic
