#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/manifest.h"
#include "trainer/checkpoints/save_word.h"
#include "trainer/loop/train_loop.h"

namespace everstep::launcher {

// What a worker process and the supervisor that started it tell each other: one JSON object per message. With an etcd a
// supervisor sends nothing to its workers, and these say no Hello: what they agree on is in etcd.

// From a worker when it can be reached by its peers.
struct Hello {
  std::string setup;              // what it is about to do (describe_setup): all must say the same
  std::string address;            // of its transport, any bytes
  storage::Settings libraries{};  // what it computes with, for the provenance of checkpoints

  bool operator==(const Hello&) const = default;
};

// From every worker from its start on, whatever it is doing.
inline constexpr std::chrono::milliseconds kAliveEvery{500};
struct Alive {
  bool operator==(const Alive&) const = default;
};

// From worker 0, or from all workers of an elastic job, when the loss on the validation split after that update is
// known.
struct Validation {
  std::int64_t step = 0;
  double loss = 0;

  bool operator==(const Validation&) const = default;
};

// From a worker that reached the end.
struct Finished {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;     // since the start of training
  std::int64_t peak_bytes = 0;  // of memory where it trained, above what was taken before

  bool operator==(const Finished&) const = default;
};

// From the workers of an elastic job, all with the same numbers: an update of that generation.
struct ElasticStep {
  Generation generation;
  trainer::StepReport report;
};

// From the workers of an elastic job, all with the same words, after a generation's first update: how it came about
// and what the change cost.
struct GenerationChanged {
  // How long each part took, in seconds.
  struct Phases {
    double detect = 0;
    double agree = 0;
    double connect = 0;
    double move = 0;
    double first_step = 0;

    bool operator==(const Phases&) const = default;
  };

  Generation generation;
  std::string plan;  // "amdp D=4 P=2 W=1"
  int workers = 0;   // of the plan
  int spares = 0;
  std::string reason;
  std::string origin;     // what it started from: "beginning", "checkpoint", "memory", "copies" or "sums"
  std::int64_t step = 0;  // where: updates made before it
  Phases phases;
  double stall = 0;         // seconds from the last update before it to its first
  std::int64_t redone = 0;  // minibatches

  bool operator==(const GenerationChanged&) const = default;
};

// From any worker: an event for the log that people read.
struct WorkerNote {
  std::string event;

  bool operator==(const WorkerNote&) const = default;
};

// Words about checkpoints are the trainer's. A StepReport comes from worker 0 alone, since all have the same. An Error
// is a worker's last word.
using FromWorker = std::variant<Hello, Alive, trainer::StepReport, Validation, trainer::ShardSaved, trainer::SaveFailed,
                                trainer::SaveSkipped, ElasticStep, GenerationChanged, WorkerNote, Finished, Error>;

// To every worker, once all said hello: the addresses by rank.
struct Start {
  std::vector<std::string> addresses;

  bool operator==(const Start&) const = default;
};

// To every worker: end at the next window's end.
struct Stop {
  bool operator==(const Stop&) const = default;
};

using ToWorker = std::variant<Start, Stop, trainer::Verdict>;

std::string encode(const FromWorker& message);
std::string encode(const ToWorker& message);

// kInternal for anything that encode did not make. Numbers that are not finite come back as NaN.
Result<FromWorker> decode_from_worker(std::string_view text);
Result<ToWorker> decode_to_worker(std::string_view text);

}  // namespace everstep::launcher
