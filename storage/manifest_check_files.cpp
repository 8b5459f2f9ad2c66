#include "storage/manifest_check_files.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "storage/bounds.h"

namespace everstep::storage {
namespace {

std::string describe(int block, StateKind kind) {
  return "block " + std::to_string(block) + ", " + std::string(to_string(kind));
}

Error about(const FileRecord& file, const std::string& what) {
  return invalid_argument(describe(file.block, file.kind) + ": " + what);
}

// Which kinds there must be, for every block alike.
std::vector<StateKind> expected_kinds(const Manifest& manifest) {
  std::vector<StateKind> kinds = {StateKind::kWeights};
  if (manifest.has(StateKind::kPrevious)) kinds.push_back(StateKind::kPrevious);
  kinds.push_back(StateKind::kOptimizer);
  if (manifest.minibatches_into_window() > 0) kinds.push_back(StateKind::kGradients);
  if (manifest.has(StateKind::kProvisional)) kinds.push_back(StateKind::kProvisional);
  return kinds;
}

// The files are exactly those of every block and expected kind, in this order.
Status check_presence(const Manifest& manifest) {
  if (manifest.is_live() && manifest.minibatches_into_window() > 0) {
    return invalid_argument("there are previous weights inside a window: they are needed at its start only");
  }
  if (manifest.has(StateKind::kPrevious) && manifest.has(StateKind::kProvisional)) {
    return invalid_argument("there are previous and provisional weights: a window begins on one of them");
  }
  if (manifest.has(StateKind::kProvisional) && manifest.plan.provisional == 0) {
    return invalid_argument("there are provisional weights of a plan that makes none");
  }
  const std::vector<StateKind> kinds = expected_kinds(manifest);
  std::size_t next = 0;
  for (int block = 0; block < manifest.blocks; ++block) {
    for (const StateKind kind : kinds) {
      if (next == manifest.files.size()) return invalid_argument(describe(block, kind) + ": there is no such file");
      const FileRecord& file = manifest.files[next++];
      if (file.block != block || file.kind != kind) {
        return invalid_argument(describe(block, kind) + ": expected this file, got " + describe(file.block, file.kind));
      }
    }
  }
  if (next == manifest.files.size()) return {};
  return about(manifest.files[next], "one file too many");
}

Status check_version(const Manifest& manifest, const FileRecord& file) {
  const bool is_of_before = file.kind == StateKind::kPrevious || file.kind == StateKind::kProvisional;
  const std::int64_t expected = manifest.version.value - (is_of_before ? 1 : 0);
  if (expected >= 0 && file.version.value == expected) return {};
  return about(file, "has version " + std::to_string(file.version.value) + ", expected " + std::to_string(expected));
}

// A file is this checkpoint's or that of the one directly before, which held the same state: its cut is not later, and
// not before the version began. Gradients change with every minibatch.
Status check_writer(const Manifest& manifest, const FileRecord& file, std::optional<CheckpointName>& other) {
  if (file.written_by == manifest.name) return {};
  if (!other) other = file.written_by;
  if (*other != file.written_by) {
    return about(file, "was written by " + to_string(file.written_by) + ", others by " + to_string(*other) +
                           ": expected this checkpoint or one other");
  }
  const std::int64_t earliest =
      file.kind == StateKind::kGradients ? manifest.name.position.value : manifest.version.value * manifest.plan.window;
  const bool fits =
      file.written_by.generation.value >= 0 && file.written_by.generation.value <= manifest.name.generation.value &&
      file.written_by.position.value >= earliest && file.written_by.position.value <= manifest.name.position.value;
  if (fits) return {};
  return about(file, "was written by " + to_string(file.written_by) + ", which cannot have held this state");
}

Status check_tensors(const FileRecord& file) {
  EVERSTEP_TRY(check_range("the number of tensors of " + describe(file.block, file.kind),
                           static_cast<std::int64_t>(file.tensors.size()), 1, kMostTensorsPerFile));
  std::vector<std::string_view> names;
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : file.tensors) {
    if (const Status status = check(tensor); !status) return about(file, status.error().message);
    names.push_back(tensor.name);
    bytes += tensor.bytes();
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return about(file, "tensor '" + std::string(*twice) + "' is there twice");
  }
  if (file.size >= bytes && file.size <= kLargestFile) return {};
  return about(file, "has " + std::to_string(file.size) + " bytes, expected " + std::to_string(bytes) + " to " +
                         std::to_string(kLargestFile));
}

std::vector<TensorSpec> sorted(std::vector<TensorSpec> tensors) {
  std::ranges::sort(tensors, {}, &TensorSpec::name);
  return tensors;
}

// What a file of that kind must hold for these weights, names ascending.
std::vector<TensorSpec> tensors_for(StateKind kind, const std::vector<TensorSpec>& weights,
                                    std::string_view accumulation) {
  std::vector<TensorSpec> expected;
  for (const TensorSpec& weight : weights) {
    TensorSpec tensor = weight;
    if (kind == StateKind::kOptimizer) {
      tensor.type = ElementType::kFloat32;
      for (const std::string_view group : {"first_moment/", "second_moment/", "master/"}) {
        if (group == "master/" && weight.type != ElementType::kBfloat16) continue;
        tensor.name = std::string(group) + weight.name;
        expected.push_back(tensor);
      }
      continue;
    }
    if (kind == StateKind::kGradients) {
      tensor.type = accumulation == "fixed48" ? ElementType::kInt64 : ElementType::kFloat32;
    }
    expected.push_back(tensor);
  }
  return sorted(std::move(expected));
}

Status check_weights(const FileRecord& file) {
  for (const TensorSpec& tensor : file.tensors) {
    if (tensor.name.find('/') != std::string::npos) {
      return about(file, "tensor '" + tensor.name + "' has a '/': those are for moments");
    }
    if (tensor.type == ElementType::kInt64) return about(file, "tensor '" + tensor.name + "' is no float");
  }
  return {};
}

// The same parameters in every kind of one block.
Status check_against_weights(const FileRecord& file, const FileRecord& weights, std::string_view accumulation) {
  const std::vector<TensorSpec> expected = tensors_for(file.kind, weights.tensors, accumulation);
  const std::vector<TensorSpec> found = sorted(file.tensors);
  const auto [want, have] = std::ranges::mismatch(expected, found);
  if (want == expected.end() && have == found.end()) return {};
  if (have == found.end() || (want != expected.end() && want->name < have->name)) {
    return about(file, "tensor '" + want->name + "' is missing");
  }
  if (want == expected.end() || have->name < want->name) {
    return about(file, "tensor '" + have->name + "' belongs to no weight");
  }
  return about(file, "tensor '" + have->name + "' has another type or shape than the weight asks for");
}

}  // namespace

Status check_files(const Manifest& manifest) {
  EVERSTEP_TRY(check_range("the number of files", static_cast<std::int64_t>(manifest.files.size()), 0,
                           std::int64_t{kKindsOfState} * manifest.blocks));
  EVERSTEP_TRY(check_presence(manifest));
  std::optional<CheckpointName> other;
  const FileRecord* weights = nullptr;
  for (const FileRecord& file : manifest.files) {
    EVERSTEP_TRY(check_version(manifest, file));
    EVERSTEP_TRY(check_writer(manifest, file, other));
    EVERSTEP_TRY(check_tensors(file));
    if (file.kind == StateKind::kWeights) {
      weights = &file;
      EVERSTEP_TRY(check_weights(file));
    } else {
      EVERSTEP_TRY(check_against_weights(file, *weights, manifest.accumulation));
    }
  }
  return {};
}

}  // namespace everstep::storage
