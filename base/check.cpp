#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace everstep {
namespace {

CheckFailureHook failure_hook = nullptr;

}  // namespace

void set_check_failure_hook(CheckFailureHook hook) { failure_hook = hook; }

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  const std::string text = std::string(file) + ":" + std::to_string(line) + ": check failed: " + condition + ": " +
                           std::string(message) + "\n";
  std::fputs(text.c_str(), stderr);
  // A hook that fails a check itself must not call itself again.
  if (const CheckFailureHook hook = std::exchange(failure_hook, nullptr)) hook(text);
  std::abort();
}

}  // namespace everstep
