#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace everstep::launcher {

// A file of lines of JSON that have ascending "step"s, written at its end and cut there. For one writer at a time.
class CurveFile {
 public:
  explicit CurveFile(std::string path) : path_(std::move(path)) {}

  // Removes the lines of steps after `step`, a torn line at the end, and all from the first line on that is none.
  // Returns the step of the last line that is left; 0: there is none, or no file.
  Result<std::int64_t> cut_after(std::int64_t step);

  // Makes the file if it is not there. Durable when it returns.
  Status append(const std::string& lines);

 private:
  Result<std::int64_t> read_through(std::int64_t step);

  const std::string path_;
};

}  // namespace everstep::launcher
