#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/job/run_directory.h"

namespace everstep::launcher {

// The word that a run of `everstep train` leaves of its end in its directory, for `everstep status` and `everstep
// stop`: end.json.
struct RunWord {
  std::string state;  // "finished", "stopped" (as it was asked to) or "failed"
  std::string error;  // the line that told why; empty: it is finished
  int exit_code = 0;
  std::int64_t ended_ms = 0;   // by the wall clock
  std::string checkpoint_dir;  // absolute; empty: there are no checkpoints
  std::string resume;          // the command that goes on; empty: there is nothing to go on with, or no need
  std::string summary;         // as it was printed; empty: there was none

  bool operator==(const RunWord&) const = default;
};

std::string to_text(const RunWord& word);
Result<RunWord> parse_run_word(std::string_view text);

// Nothing: the run has left none.
std::optional<RunWord> read_run_word(const RunDirectory& directory);

// Leaves word of a run that ends like this, with what it printed as its summary (empty: nothing). A failure gets the
// command that goes on as its hint, if a checkpoint was saved and the summary has not told it; where others still work
// for the job, that command joins them. Returns the outcome for the user.
Outcome leave_word(const RunDirectory& directory, const Config& config, const std::string& summary, Outcome outcome);

// Held on a run's directory by the `everstep train` that runs there, until it ends in whatever way.
class RunLock {
 public:
  // kUnavailable: another process runs there. A file system that knows no locks is taken as it is.
  static Result<RunLock> take(const std::string& run_directory);
  // Whether anybody holds it.
  static bool is_locked(const std::string& run_directory);

  RunLock() = default;
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace everstep::launcher
