#include "base/result.h"

namespace everstep {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kStaleGeneration:
      return "stale_generation";
    case ErrorCode::kDataLoss:
      return "data_loss";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string Error::line() const { return hint.empty() ? message : message + " (hint: " + hint + ")"; }

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << to_string(error.code) << ": " << error.line();
}

}  // namespace everstep
