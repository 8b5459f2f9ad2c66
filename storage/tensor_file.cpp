#include "storage/tensor_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace everstep::storage {
namespace {

constexpr std::array<std::pair<ElementType, std::string_view>, 3> kElementTypes{{
    {ElementType::kFloat32, "float32"},
    {ElementType::kBfloat16, "bfloat16"},
    {ElementType::kInt64, "int64"},
}};

constexpr std::size_t kLongestName = 200;
constexpr std::size_t kMostDimensions = 8;
constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

const char* complaint_about_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return "its name must have 1 to 200 characters";
  for (const char c : name) {
    if (c < ' ' || c > '~') return "its name may have printable ASCII characters only";
  }
  const std::size_t slash = name.find('/');
  const bool has_group = slash != std::string_view::npos;
  const std::string_view group = has_group ? name.substr(0, slash) : "no group";
  const std::string_view rest = has_group ? name.substr(slash + 1) : name;
  if (rest.find('/') != std::string_view::npos) return "its name may have one '/' only";
  if (group.empty() || rest.empty()) return "its name must have characters on both sides of '/'";
  if (group == "." || rest == ".") return "'.' is no name";
  return nullptr;
}

// What to print of a name that may hold anything.
std::string printable(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kLongestName)) text += c >= ' ' && c <= '~' ? c : '?';
  return text;
}

}  // namespace

std::string_view to_string(ElementType type) {
  for (const auto& [candidate, text] : kElementTypes) {
    if (candidate == type) return text;
  }
  check_failed(__FILE__, __LINE__, "a known type", "no such element type");
}

std::optional<ElementType> parse_element_type(std::string_view text) {
  for (const auto& [type, name] : kElementTypes) {
    if (name == text) return type;
  }
  return std::nullopt;
}

std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 4;
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kInt64:
      return 8;
  }
  check_failed(__FILE__, __LINE__, "a known type", "no such element type");
}

std::uint64_t TensorSpec::elements() const {
  std::uint64_t elements = 1;
  for (const std::int64_t dimension : shape) {
    EVERSTEP_CHECK(dimension >= 0, "a dimension is not negative");
    const auto factor = static_cast<std::uint64_t>(dimension);
    EVERSTEP_CHECK(factor == 0 || elements <= std::numeric_limits<std::uint64_t>::max() / 8 / factor,
                   "a tensor's bytes fit in 64 bits");
    elements *= factor;
  }
  return elements;
}

Status check(const TensorSpec& tensor) {
  const auto refused = [&](std::string_view why) {
    return invalid_argument("the tensor '" + printable(tensor.name) + "' is refused: " + std::string(why));
  };
  if (const char* complaint = complaint_about_name(tensor.name); complaint != nullptr) return refused(complaint);
  if (tensor.shape.size() > kMostDimensions) return refused("it has more than 8 dimensions");
  std::uint64_t bytes = bytes_of(tensor.type);
  for (const std::int64_t dimension : tensor.shape) {
    if (dimension < 1 || dimension > kLargestDimension) return refused("a dimension is not from 1 to 2^40");
    if (bytes > kMostBytes / static_cast<std::uint64_t>(dimension)) return refused("it has more than 2^40 bytes");
    bytes *= static_cast<std::uint64_t>(dimension);
  }
  return {};
}

}  // namespace everstep::storage
