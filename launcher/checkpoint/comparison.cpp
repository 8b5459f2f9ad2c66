#include "launcher/checkpoint/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "launcher/checkpoint/checkpoint_details.h"
#include "launcher/cli/long_work.h"

namespace everstep::launcher {
namespace {

using storage::ElementType;
using storage::FileRecord;
using storage::Manifest;
using storage::StateKind;
using storage::TensorSpec;

using Place = std::pair<int, StateKind>;

void compare_lists(const std::string& title, const storage::Settings& a, const storage::Settings& b,
                   std::vector<SettingDifference>& differences) {
  const std::string prefix = title + ".";
  std::map<std::string, std::pair<std::string, std::string>> joined;
  for (const auto& [name, value] : a) joined[name].first = value;
  for (const auto& [name, value] : b) joined[name].second = value;
  for (const auto& [name, values] : joined) {
    if (values.first != values.second) differences.push_back({prefix + name, values.first, values.second});
  }
}

double value_at(ElementType type, const std::byte* bytes) {
  if (type == ElementType::kInt64) {
    std::int64_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  }
  // A bfloat16 is the upper half of a float.
  std::uint32_t bits = 0;
  const std::size_t size = bytes_of(type);
  std::memcpy(reinterpret_cast<std::byte*>(&bits) + (sizeof bits - size), bytes, size);
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::string shape_text(const TensorSpec& tensor) {
  std::string text = std::string(to_string(tensor.type)) + " [";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  }
  return text + "]";
}

std::map<std::string, int> index_of(const FileRecord* file) {
  std::map<std::string, int> index;
  for (int i = 0; file != nullptr && i < std::ssize(file->tensors); ++i) {
    index[file->tensors[static_cast<std::size_t>(i)].name] = i;
  }
  return index;
}

// Both files of one block and kind; at most one of them may be missing.
class FilePair {
 public:
  FilePair(const Compared& a, const Compared& b, const Place& place)
      : place_(place),
        a_{a, a.entry.manifest.find(place.first, place.second), {}},
        b_{b, b.entry.manifest.find(place.first, place.second), {}} {}

  std::uint64_t bytes() const { return is_same() ? 0 : a_.size() + b_.size(); }

  Status compare(Comparison& comparison, KindTotals& totals) {
    const auto in_a = index_of(a_.record);
    const auto in_b = index_of(b_.record);
    std::set<std::string> names;
    for (const auto& [name, index] : in_a) names.insert(name);
    for (const auto& [name, index] : in_b) names.insert(name);
    totals.tensors += names.size();
    if (is_same()) return {};
    EVERSTEP_TRY(a_.load());
    EVERSTEP_TRY(b_.load());
    for (const std::string& name : names) {
      auto difference = compare_one(name, in_a, in_b);
      if (!difference) continue;
      difference->block = place_.first;
      difference->kind = place_.second;
      difference->name = name;
      comparison.tensors.push_back(*std::move(difference));
      ++totals.different;
    }
    return {};
  }

 private:
  struct Side {
    const Compared& from;
    const FileRecord* record;
    storage::LoadedBlockFile loaded;

    std::uint64_t size() const { return record == nullptr ? 0 : record->size; }
    Status load() {
      if (record == nullptr) return {};
      const Manifest& manifest = from.entry.manifest;
      auto file = load_block_file(from.store.files(), manifest.job, manifest.lineage, *record);
      if (!file) return file.error();
      loaded = std::move(file).value();
      return {};
    }
  };

  bool is_same() const {
    return a_.record != nullptr && b_.record != nullptr && a_.record->sha256 == b_.record->sha256 &&
           a_.record->tensors == b_.record->tensors;
  }

  std::optional<TensorDifference> compare_one(const std::string& name, const std::map<std::string, int>& in_a,
                                              const std::map<std::string, int>& in_b) const {
    TensorDifference difference;
    const auto at_a = in_a.find(name);
    const auto at_b = in_b.find(name);
    if (at_a == in_a.end() || at_b == in_b.end()) {
      difference.reason = at_a == in_a.end() ? "only in B" : "only in A";
      return difference;
    }
    const TensorSpec& tensor_a = a_.record->tensors[static_cast<std::size_t>(at_a->second)];
    const TensorSpec& tensor_b = b_.record->tensors[static_cast<std::size_t>(at_b->second)];
    if (tensor_a != tensor_b) {
      difference.reason = shape_text(tensor_a) + " and " + shape_text(tensor_b);
      return difference;
    }
    return compare_bytes(tensor_a, a_.loaded.tensor(*a_.record, at_a->second),
                         b_.loaded.tensor(*b_.record, at_b->second));
  }

  Place place_;
  Side a_;
  Side b_;
};

std::set<Place> places_of(const Manifest& a, const Manifest& b) {
  std::set<Place> places;
  for (const Manifest* manifest : {&a, &b}) {
    for (const FileRecord& file : manifest->files) places.emplace(file.block, file.kind);
  }
  return places;
}

}  // namespace

std::vector<SettingDifference> compare_settings(const Manifest& a, const Manifest& b) {
  std::vector<SettingDifference> differences;
  const auto add = [&differences](std::string name, std::string in_a, std::string in_b) {
    if (in_a != in_b) differences.push_back({std::move(name), std::move(in_a), std::move(in_b)});
  };
  add("step", std::to_string(a.version.value), std::to_string(b.version.value));
  add("position", std::to_string(a.name.position.value), std::to_string(b.name.position.value));
  add("applied", std::to_string(a.applied), std::to_string(b.applied));
  add("plan", plan_text(a.plan), plan_text(b.plan));
  add("accumulation", a.accumulation, b.accumulation);
  compare_lists("configuration", a.configuration, b.configuration, differences);
  compare_lists("provenance", a.provenance, b.provenance, differences);
  return differences;
}

std::optional<TensorDifference> compare_bytes(const TensorSpec& tensor, std::span<const std::byte> a,
                                              std::span<const std::byte> b) {
  if (std::ranges::equal(a, b)) return std::nullopt;
  TensorDifference difference;
  difference.largest_distance = 0;
  const std::size_t size = bytes_of(tensor.type);
  for (std::size_t i = 0; i < a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    ++difference.elements;
    const double distance = std::abs(value_at(tensor.type, &a[i]) - value_at(tensor.type, &b[i]));
    if (!std::isfinite(distance)) difference.largest_distance.reset();
    if (difference.largest_distance) difference.largest_distance = std::max(*difference.largest_distance, distance);
  }
  return difference;
}

Status compare_tensors(const Compared& a, const Compared& b, Streams& streams, Comparison& comparison) {
  std::map<StateKind, KindTotals> totals;
  const std::set<Place> places = places_of(a.entry.manifest, b.entry.manifest);
  std::uint64_t total = 0;
  for (const Place& place : places) total += FilePair(a, b, place).bytes();
  LongWork work(streams, "comparing", total);
  std::uint64_t done = 0;
  for (const Place& place : places) {
    FilePair pair(a, b, place);
    totals[place.second].kind = place.second;
    EVERSTEP_TRY(pair.compare(comparison, totals[place.second]));
    done += pair.bytes();
    if (!work.advance_to(done)) return work.stopped_error();
  }
  for (const auto& [kind, total_of_kind] : totals) comparison.totals.push_back(total_of_kind);
  return {};
}

}  // namespace everstep::launcher
