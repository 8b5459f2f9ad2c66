#include "launcher/cli/progress_line.h"

#include <utility>

namespace everstep::launcher {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

void ProgressLine::show(std::string_view text) {
  if (!is_visible()) return;
  // A line that fills the last column would wrap.
  streams_.log << kClearLine << text.substr(0, streams_.log_columns - 1) << std::flush;
  is_open_ = true;
}

void ProgressLine::clear() {
  if (std::exchange(is_open_, false)) streams_.log << kClearLine << std::flush;
}

void ProgressLine::keep() {
  if (std::exchange(is_open_, false)) streams_.log << std::endl;
}

}  // namespace everstep::launcher
