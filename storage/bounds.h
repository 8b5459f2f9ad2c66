#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/manifest.h"

namespace everstep::storage {

// What no honest document exceeds. Products of these stay within 64 bits.
inline constexpr std::int64_t kMostGenerations = std::int64_t{1} << 40;
inline constexpr std::int64_t kMostVersions = std::int64_t{1} << 40;
inline constexpr int kLargestWindow = 1 << 20;
inline constexpr std::int64_t kLastPosition = kMostVersions * kLargestWindow;
inline constexpr int kMostBlocks = 100'000;
inline constexpr int kKindsOfState = 5;
inline constexpr std::size_t kMostTensorsPerFile = 4096;
inline constexpr std::size_t kMostSettings = 10'000;
inline constexpr std::size_t kMostListedWindows = 10'000'000;  // flushed or skipped
inline constexpr std::size_t kLongestName = 200;
inline constexpr std::size_t kLongestPlan = 1000;  // in the ledger: it lists the cuts
inline constexpr std::size_t kLongestValue = 65'536;
inline constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 44;

// "depth is 0, expected 1 to 100000".
Status check_range(std::string_view what, std::int64_t value, std::int64_t min, std::int64_t max);

// What a gradient may have been multiplied by: more than 0, at most 1.
Status check_clip_scale(double scale);

// 1 … `longest` printable ASCII characters.
Status check_name(std::string_view what, std::string_view text, std::size_t longest = kLongestName);

// Generation and position within bounds.
Status check_bounds(const CheckpointName& name);

}  // namespace everstep::storage
