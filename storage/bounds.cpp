#include "storage/bounds.h"

#include <algorithm>

namespace everstep::storage {

Status check_range(std::string_view what, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return {};
  return invalid_argument(std::string(what) + " is " + std::to_string(value) + ", expected " + std::to_string(min) +
                          " to " + std::to_string(max));
}

Status check_clip_scale(double scale) {
  if (scale > 0 && scale <= 1) return {};
  return invalid_argument("clip_scale is not in (0, 1]");
}

Status check_name(std::string_view what, std::string_view text, std::size_t longest) {
  const bool printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  if (!text.empty() && text.size() <= longest && printable) return {};
  return invalid_argument(std::string(what) + ": expected 1 to " + std::to_string(longest) +
                          " printable ASCII characters, got " + std::to_string(text.size()) +
                          (printable ? "" : " with others among them"));
}

Status check_bounds(const CheckpointName& name) {
  EVERSTEP_TRY(check_range("generation", name.generation.value, 0, kMostGenerations));
  return check_range("position", name.position.value, 0, kLastPosition);
}

}  // namespace everstep::storage
