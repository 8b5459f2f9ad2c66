#include "launcher/status/status_lines.h"

#include <utility>

#include "launcher/cli/printable.h"

namespace everstep::launcher {

void StatusLines::add(std::string_view name, const std::string& value) {
  constexpr std::size_t kWidth = 12;
  text_ += "  " + std::string(name) + std::string(kWidth - name.size(), ' ') + printable(value) + "\n";
}

std::string StatusLines::take() { return std::exchange(text_, {}); }

std::string head_text(std::optional<std::int64_t> step, Position position, std::int64_t sequence,
                      Generation generation) {
  return (step ? "step " + std::to_string(*step) + ", " : std::string()) + "position " +
         std::to_string(position.value) + ", checkpoint " + std::to_string(sequence) + " of the job, generation " +
         std::to_string(generation.value);
}

}  // namespace everstep::launcher
