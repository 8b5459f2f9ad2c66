#include "storage/hdf5/hdf5_format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hdf5.h>

#include "storage/bounds.h"
#include "storage/hdf5/hdf5_find.h"
#include "storage/hdf5/hdf5_layout.h"

namespace everstep::storage {
namespace {

constexpr std::size_t kLongestText = 1000;

Status check_text(std::string_view name, std::string_view text) {
  if (text.size() <= kLongestText && text.find('\0') == std::string_view::npos) return {};
  return invalid_argument("the " + std::string(name) + " of a tensor file must have at most " +
                          std::to_string(kLongestText) + " characters and no NUL");
}

Status check(const TensorFileSpec& spec) {
  EVERSTEP_TRY(check_text("job", spec.attributes.job));
  EVERSTEP_TRY(check_text("kind", spec.attributes.kind));
  if (spec.tensors.size() > kMostTensorsPerFile) {
    return invalid_argument("a tensor file holds at most " + std::to_string(kMostTensorsPerFile) + " tensors, not " +
                            std::to_string(spec.tensors.size()));
  }
  std::set<std::string_view> names;
  std::set<std::string_view> groups;
  for (const TensorSpec& tensor : spec.tensors) {
    EVERSTEP_TRY(storage::check(tensor));
    if (!names.insert(tensor.name).second) return invalid_argument("two tensors are named " + tensor.name);
    const std::string_view name = tensor.name;
    if (name.find('/') != std::string_view::npos) groups.insert(name.substr(0, name.find('/')));
  }
  const auto both = std::find_if(groups.begin(), groups.end(), [&](auto group) { return names.contains(group); });
  if (both == groups.end()) return {};
  return invalid_argument("'" + std::string(*both) + "' names a tensor and a group of tensors");
}

class Hdf5Format final : public TensorFormat {
 public:
  Result<TensorFileLayout> lay_out(const TensorFileSpec& spec) const override {
    EVERSTEP_TRY(check(spec));
    return lay_out_with_hdf5(spec);
  }

  Result<std::vector<std::uint64_t>> find_tensors(std::span<const std::byte> file,
                                                  const TensorFileSpec& expected) const override {
    EVERSTEP_TRY(check(expected));
    return find_tensors_in_hdf5(file, expected);
  }
};

}  // namespace

std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::unique_ptr<TensorFormat> make_hdf5_format() { return std::make_unique<Hdf5Format>(); }

}  // namespace everstep::storage
