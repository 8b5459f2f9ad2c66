#pragma once

#include <string>

#include <grpcpp/support/status.h>

#include "base/result.h"

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

// `status` is not ok.
CallFailure explain(const grpc::Status& status, const std::string& url);

// The server did not take the connection in time.
CallFailure not_connected(const std::string& url);

}  // namespace everstep::elastic
