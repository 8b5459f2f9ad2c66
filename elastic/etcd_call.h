#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "elastic/kv_store.h"

// What the clients of etcd agree on, whichever library they use.
namespace everstep::elastic {

// What a try that was not answered means for the call.
struct CallFailure {
  enum class Kind {
    kNotExecuted,  // another try is safe, and may help
    kUnknown,      // it may have been executed
    kFinal,        // `error` is the answer
  };

  Kind kind = Kind::kUnknown;
  Error error;
};

// `code` is gRPC's number for what went wrong, not 0.
CallFailure explain(int code, const std::string& message, const std::string& url);

// The server did not take the connection in time.
CallFailure not_connected(const std::string& url);

enum class Repeat { kNever, kFreely };  // whether a call that may have been executed is sent again

// The tries of one call, one server after the other.
class CallTries {
 public:
  CallTries(std::size_t servers, Repeat repeat) : servers_(servers), repeat_(repeat) {}

  // Takes note of a failed try. True: the call ends with this failure; else another server may be tried.
  bool ends_after(const CallFailure& failure);

  // What to say of a call whose time is over: of its failures one that leaves the most open. At least one was told.
  const Error& worst() const { return worst_->error; }

  // Whether every server has failed as often as the others: time for a pause.
  bool is_round_over() const { return failures_ % servers_ == 0; }

 private:
  std::size_t servers_;
  Repeat repeat_;
  std::size_t failures_ = 0;
  std::optional<CallFailure> worst_;
};

// The keys from `first` up to, not including, `end`: those with a prefix.
struct KeyRange {
  std::string first;
  std::string end;
};

KeyRange range_of_prefix(std::string_view prefix);

}  // namespace everstep::elastic
