#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
      return ExitCode::kConfiguration;
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
      return ExitCode::kUnreachable;
    case ErrorCode::kStaleGeneration:
    case ErrorCode::kCancelled:
      return ExitCode::kRestart;
    case ErrorCode::kDataLoss:
      return ExitCode::kDamagedCheckpoint;
    case ErrorCode::kInternal:
      break;
  }
  return ExitCode::kInternal;
}

}  // namespace everstep::launcher
