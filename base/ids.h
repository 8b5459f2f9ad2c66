#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace everstep {

// A number that is not interchangeable with other numbers. `Tag` only tells the types apart.
template <typename Tag>
struct Counter {
  std::int64_t value = 0;

  constexpr Counter next() const { return {value + 1}; }
  constexpr auto operator<=>(const Counter&) const = default;  // NOLINT(modernize-use-nullptr): as for WorkerId below
};

template <typename Tag>
std::ostream& operator<<(std::ostream& out, Counter<Tag> counter) {
  return out << counter.value;
}

// Counts agreed memberships. It only grows, and it is the fencing token: on every message, key and file.
using Generation = Counter<struct GenerationTag>;

// Windows applied or skipped so far: the age of a set of weights.
using Version = Counter<struct VersionTag>;

// Minibatches since the start of training. The data cursor is a pure function of it.
using Position = Counter<struct PositionTag>;

// Names one incarnation of a worker: a random 128-bit number, never reused. A worker that comes back is another worker.
struct WorkerId {
  std::array<std::uint64_t, 2> words{};

  auto operator<=>(const WorkerId&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 mistakes the 0
};

// 32 lower-case hexadecimal digits.
std::string to_string(const WorkerId& id);

// The inverse of to_string; nothing for any other text.
std::optional<WorkerId> parse_worker_id(std::string_view text);

std::ostream& operator<<(std::ostream& out, const WorkerId& id);

}  // namespace everstep
