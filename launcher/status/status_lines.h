#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace everstep::launcher {

// The lines of `everstep status`: "  step        120 of 1000". Fit for a terminal, whoever wrote the values.
class StatusLines {
 public:
  void add(std::string_view name, const std::string& value);
  std::string take();

 private:
  std::string text_;
};

// "step 120, position 960, checkpoint 9 of the job, generation 4". The step may not be known.
std::string head_text(std::optional<std::int64_t> step, Position position, std::int64_t sequence,
                      Generation generation);

}  // namespace everstep::launcher
