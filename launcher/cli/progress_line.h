#pragma once

#include <string>
#include <string_view>

#include "launcher/cli/command.h"

namespace everstep::launcher {

// One line on a terminal that is written over and over again; nothing where there is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(Streams& streams) : streams_(streams) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  bool is_visible() const { return streams_.log_columns > 0; }

  // Cut to the width of the terminal.
  void show(std::string_view text);
  // Takes the line away, so that something else may be printed there.
  void clear();
  // Ends the line and leaves it there.
  void keep();

 private:
  Streams& streams_;
  bool is_open_ = false;
};

}  // namespace everstep::launcher
