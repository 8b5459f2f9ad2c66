#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "storage/hashing.h"
#include "storage/json/json.h"
#include "storage/manifest.h"

namespace everstep::storage {

// Doubles keep every bit: a number with the fewest digits that read back as the same, or, for NaN and infinity, which
// JSON does not have, the 16 hexadecimal digits of its bits. Nothing for any other value.
Json to_json(double value);
std::optional<double> parse_double(const Json& json);

Json to_json(const std::vector<double>& values);

// null for nothing.
Json to_json(const std::optional<double>& value);
Json to_json(const std::optional<Digest>& digest);

// An object with a member per setting.
Json to_json(const Settings& settings);

// Windows, ascending, as runs [first, end] without the end, since most lists are a few long ones. Parsing stops before
// there are more than `most`.
Json windows_to_json(const std::vector<std::int64_t>& windows);
Result<std::vector<std::int64_t>> parse_windows(const Json::Array& runs, std::size_t most);

}  // namespace everstep::storage
