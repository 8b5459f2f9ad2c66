#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace everstep {
namespace {

CheckFailureHook failure_hook = nullptr;

}  // namespace

void set_check_failure_hook(CheckFailureHook hook) { failure_hook = hook; }

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  const std::string text = std::string(file) + ":" + std::to_string(line) + ": check failed: " + condition + ": " +
                           std::string(message) + "\n";
  std::fputs(text.c_str(), stderr);
  if (failure_hook != nullptr) failure_hook(text);
  std::abort();
}

}  // namespace everstep
