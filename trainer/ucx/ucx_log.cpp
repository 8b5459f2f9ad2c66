#include "trainer/ucx/ucx_log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

#include <ucs/debug/log_def.h>

namespace everstep::trainer {
namespace {

thread_local std::string last_complaint;

ucs_log_func_rc_t keep_complaint(const char* /*file*/, unsigned /*line*/, const char* /*function*/,
                                 ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                                 const char* format, va_list values) {
  if (level <= UCS_LOG_LEVEL_WARN) {
    std::array<char, 512> text{};
    std::vsnprintf(text.data(), text.size(), format, values);
    last_complaint = text.data();
  }
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

void keep_ucx_quiet() {
  static std::once_flag once;
  std::call_once(once, [] { ucs_log_push_handler(keep_complaint); });
}

std::string take_ucx_complaint() { return std::exchange(last_complaint, {}); }

}  // namespace everstep::trainer
