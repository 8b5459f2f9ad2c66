#pragma once

#include <optional>

#include "base/result.h"

namespace everstep::launcher {

// How the process ends: the numbers of sysexits.h, which supervisors and scripts know.
enum class ExitCode {
  kDone = 0,
  kDifferent = 1,           // what was to be compared differs, as diff(1) says it; a check of the doctor has failed
  kUsage = 64,              // the command line is wrong
  kDamagedCheckpoint = 65,  // stored data is damaged
  kUnreachable = 69,        // etcd, peers or a device did not answer within the limit
  kInternal = 70,           // a bug
  kRestart = 75,            // fenced or preempted: safe to start again
  kConfiguration = 78,      // what the files, the environment or all settings together say cannot work
};

ExitCode exit_code_of(ErrorCode code);

// Why a command ended early, and the exit code that follows. Only the command knows whether a bad value stood on the
// command line (usage) or elsewhere (configuration): an Error that says nothing more counts as the latter.
struct Failure {
  Error error;
  ExitCode exit_code = ExitCode::kInternal;

  // NOLINTNEXTLINE(google-explicit-constructor): `return plan.error();` must do in a command.
  Failure(Error reason) : error(std::move(reason)), exit_code(exit_code_of(error.code)) {}
  Failure(Error reason, ExitCode code) : error(std::move(reason)), exit_code(code) {}

  bool operator==(const Failure&) const = default;
};

// What a command returns: nothing when it did its work. An Error converts to it.
using Outcome = std::optional<Failure>;

}  // namespace everstep::launcher
