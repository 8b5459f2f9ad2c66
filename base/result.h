#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace everstep {

// What the caller should *do*, not what went wrong inside.
enum class ErrorCode {
  kInvalidArgument,   // fix the input
  kNotFound,          // name something that exists
  kUnavailable,       // retry this call
  kDeadlineExceeded,  // the peer's state is unknown: abort the transport
  kStaleGeneration,   // we are fenced: rejoin as a new worker
  kDataLoss,          // use an older checkpoint
  kCancelled,         // we asked for it
  kInternal,          // report it
};

std::string_view to_string(ErrorCode code);

// One expected failure. `message` says what, which object and why; `hint` (may be empty) says what to try.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string hint;

  // "message (hint: …)", the one line a user reads.
  std::string line() const;

  bool operator==(const Error&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Error& error);

inline Error invalid_argument(std::string message, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(hint)};
}

inline Error not_found(std::string message, std::string hint = {}) {
  return {ErrorCode::kNotFound, std::move(message), std::move(hint)};
}

// Either a value or an Error. Reading the side that is not there is a bug and ends the process.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    require_value();
    return std::get<0>(state_);
  }
  T& value() & {
    require_value();
    return std::get<0>(state_);
  }
  T&& value() && {
    require_value();
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const {
    EVERSTEP_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  void require_value() const { EVERSTEP_CHECK(ok(), std::get<1>(state_).line()); }

  std::variant<T, Error> state_;
};

// The outcome of an action that yields nothing.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& error() const {
    EVERSTEP_CHECK(!ok(), "error() of a Status that is ok");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace everstep

// Hands an Error on to the caller: `EVERSTEP_TRY(check_shape(shape));`
#define EVERSTEP_TRY(expression)                                         \
  do {                                                                   \
    if (auto everstep_try_status = (expression); !everstep_try_status) { \
      return everstep_try_status.error();                                \
    }                                                                    \
  } while (false)
