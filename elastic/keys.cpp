#include "elastic/keys.h"

#include "base/text.h"

namespace everstep::elastic {
namespace {

// So many digits that keys sort as their numbers do.
std::string sortable(std::int64_t number) {
  const std::string digits = std::to_string(number);
  constexpr std::size_t kDigits = 20;
  return std::string(kDigits - digits.size(), '0') + digits;
}

}  // namespace

std::string to_string(const Attempt& attempt) {
  return std::to_string(attempt.generation.value) + "-" + hex_text(attempt.nonce);
}

Keys::Keys(std::string_view job) : prefix_(std::string(kAllJobs) + std::string(job) + "/") {}

std::string Keys::past_generation(Generation generation) const {
  return past_generations() + sortable(generation.value);
}

std::string Keys::past_head(std::int64_t sequence) const { return past_heads() + sortable(sequence); }

}  // namespace everstep::elastic
