#pragma once

#include <string_view>

namespace everstep {

// Called once with the message before the process aborts; the flight recorder dumps itself here. Must not throw.
// Set it at start-up, before other threads run.
using CheckFailureHook = void (*)(std::string_view message);
void set_check_failure_hook(CheckFailureHook hook);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

}  // namespace everstep

// A condition that only a bug can break. Compiled into every build: a trainer that goes on with a broken invariant
// destroys more than one that stops. `message` is evaluated only on failure.
#define EVERSTEP_CHECK(condition, message)                                 \
  do {                                                                     \
    if (!(condition)) [[unlikely]] {                                       \
      ::everstep::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                      \
  } while (false)
