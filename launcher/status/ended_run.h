#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/job/run_word.h"
#include "storage/catalog.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// How far the run in a directory is, as its files tell.
enum class RunPhase {
  kNone,      // there is no run (yet)
  kStarting,  // everstep train is there, its job is not
  kFixed,     // its workers neither come nor go: there is no etcd to ask
  kRunning,   // the job has an address; what its etcd says counts
  kEnded,     // nobody runs it any more
};
RunPhase phase_of(const std::string& run_directory);

// What the files of a run tell when it has ended.
struct EndedRun {
  std::string directory;
  std::string job;
  std::int64_t steps = 0;                     // it was to make; 0: not known
  RunWord word;                               // state "killed": it has left none
  std::optional<storage::CatalogEntry> head;  // nothing: no checkpoint, or none that can be read
};

// kInvalidArgument: there are no files of a run, or they cannot be read. `secret` may be empty.
Result<EndedRun> read_ended_run(const std::string& run_directory, const std::string& secret);

// For people, and for programs.
std::string ended_run_text(const EndedRun& run);
storage::Json ended_run_json(const EndedRun& run);

}  // namespace everstep::launcher
