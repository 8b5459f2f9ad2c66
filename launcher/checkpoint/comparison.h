#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_store.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// A setting, or another fact about a checkpoint, that is not the same in both.
struct SettingDifference {
  std::string name;  // "plan", "configuration.lr", "provenance.everstep"
  std::string a;     // empty: not there
  std::string b;

  bool operator==(const SettingDifference&) const = default;
};

// A tensor that is not the same in both.
struct TensorDifference {
  int block = 0;
  storage::StateKind kind = storage::StateKind::kWeights;
  std::string name;
  std::string reason;          // empty: the numbers differ; else "only in A", "shape [2, 3] and [3, 2]", …
  std::uint64_t elements = 0;  // that differ, by their bits
  std::optional<double> largest_distance;  // nothing if one of them is not a number

  bool operator==(const TensorDifference&) const = default;
};

struct KindTotals {
  storage::StateKind kind = storage::StateKind::kWeights;
  std::uint64_t tensors = 0;  // in either
  std::uint64_t different = 0;

  bool operator==(const KindTotals&) const = default;
};

struct Comparison {
  std::vector<SettingDifference> settings;
  std::vector<TensorDifference> tensors;  // by block, kind and name
  std::vector<KindTotals> totals;         // kinds that either has

  bool equal() const { return settings.empty() && tensors.empty(); }
};

// A checkpoint and where to read it from.
struct Compared {
  CheckpointStore& store;
  const storage::CatalogEntry& entry;
};

// What differs in settings, plan and place in the run.
std::vector<SettingDifference> compare_settings(const storage::Manifest& a, const storage::Manifest& b);

// How two tensors of one type and shape differ; nothing if they are equal in every bit.
std::optional<TensorDifference> compare_bytes(const storage::TensorSpec& tensor, std::span<const std::byte> a,
                                              std::span<const std::byte> b);

// Fills in tensors and totals. Files of equal digests are not read; all others are verified on the way. Holds two files
// at a time in memory. kCancelled if a signal asked to stop.
Status compare_tensors(const Compared& a, const Compared& b, Streams& streams, Comparison& comparison);

// `rows`: how many tensors to list.
std::string comparison_text(const Comparison& comparison, std::size_t rows, std::size_t columns = 0);
storage::Json comparison_json(const Comparison& comparison);

}  // namespace everstep::launcher
