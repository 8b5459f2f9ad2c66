#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "base/result.h"

namespace everstep::launcher {

// The files of one run, all in one directory.
struct RunDirectory {
  std::string path;

  std::string metrics() const { return path + "/metrics.jsonl"; }
  std::string curve() const { return path + "/curve.jsonl"; }  // a link to the job's, beside its checkpoints
  std::string config() const { return path + "/config.txt"; }
  std::string end() const { return path + "/end.json"; }  // once it has ended: see RunWord
  std::string worker_log(int rank) const { return path + "/worker-" + std::to_string(rank) + ".log"; }
  std::string worker_trace(int rank) const { return path + "/worker-" + std::to_string(rank) + ".ops"; }
};

// "runs/20261116-054640-8c1f0e5d2a7b9c34", in UTC.
std::string default_run_path(std::time_t now, std::uint64_t lineage);

// Makes the directory and those above it. One that holds a run's files is refused and left as it is, unless `goes_on`:
// then metrics and logs are written behind what is there.
Result<RunDirectory> make_run_directory(const std::string& path, bool goes_on = false);

}  // namespace everstep::launcher
