#include "launcher/proof/replay_comparison.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "base/text.h"
#include "trainer/checkpoints/restore.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::launcher {
namespace {

using storage::ElementType;
using trainer::StateTensor;

constexpr int kCompareThreads = 2;

bool is_same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

bool is_close(double a, double b) { return is_same_number(a, b) || std::fabs(a - b) <= kLossTolerance * std::fabs(a); }

double element(const StateTensor& tensor, std::size_t index) {
  const std::byte* const data = tensor.bytes.data();
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
  };
  switch (tensor.stored.tensor.type) {
    case ElementType::kBfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(read(std::uint16_t{})) << 16);
    case ElementType::kInt64:
      return static_cast<double>(read(std::int64_t{})) * 0x1p-48;
    default:
      return read(float{});
  }
}

std::string place_of(const StateTensor& tensor) {
  return "block " + std::to_string(tensor.stored.block) + ", " + std::string(to_string(tensor.stored.kind)) + ", " +
         tensor.stored.tensor.name;
}

std::string both(const std::string& place, double committed, double replayed) {
  return place + ": " + hex_float(committed) + " was committed, " + hex_float(replayed) + " is replayed";
}

Difference compare_bits(const std::vector<StateTensor>& committed, const std::vector<StateTensor>& replayed) {
  for (std::size_t i = 0; i < committed.size(); ++i) {
    const auto [a, b] = std::mismatch(committed[i].bytes.begin(), committed[i].bytes.end(), replayed[i].bytes.begin());
    if (a == committed[i].bytes.end()) continue;
    const std::size_t index =
        static_cast<std::size_t>(a - committed[i].bytes.begin()) / storage::bytes_of(committed[i].stored.tensor.type);
    return both(place_of(committed[i]) + "[" + std::to_string(index) + "]", element(committed[i], index),
                element(replayed[i], index));
  }
  return {};
}

// Over all tensors of a kind: some parameters (biases of keys) have nothing but rounding errors for a gradient.
Difference compare_norms(const std::vector<StateTensor>& committed, const std::vector<StateTensor>& replayed) {
  struct Sums {
    double apart = 0;
    double all = 0;
  };
  std::map<std::string, Sums> parts;
  for (std::size_t i = 0; i < committed.size(); ++i) {
    const std::string& name = committed[i].stored.tensor.name;
    const std::string part = name.substr(0, name.find('/') + 1);
    Sums& sums = parts[std::string(to_string(committed[i].stored.kind)) + (part.empty() ? "" : ", " + part)];
    const std::size_t elements = committed[i].bytes.size() / storage::bytes_of(committed[i].stored.tensor.type);
    for (std::size_t k = 0; k < elements; ++k) {
      sums.apart += std::pow(element(committed[i], k) - element(replayed[i], k), 2);
      sums.all += std::pow(element(committed[i], k), 2);
    }
  }
  for (const auto& [name, sums] : parts) {
    if (std::sqrt(sums.apart) <= kStateTolerance * std::sqrt(sums.all)) continue;
    return "block " + std::to_string(committed.front().stored.block) + ", " + name + ": " +
           hex_float(std::sqrt(sums.apart)) + " apart at a norm of " + hex_float(std::sqrt(sums.all));
  }
  return {};
}

trainer::StageState room_like(const trainer::StageState& state) {
  const auto room = [](const trainer::Buffer& buffer) {
    return buffer.empty() ? trainer::Buffer{} : trainer::allocate_zeroed(buffer.size);
  };
  return {room(state.weights), room(state.previous),  room(state.first_moment), room(state.second_moment),
          room(state.master),  room(state.gradients), room(state.provisional)};
}

}  // namespace

std::string hex_float(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : (value < 0 ? "-inf" : "inf");
  std::array<char, 40> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), std::fabs(value), std::chars_format::hex);
  return (std::signbit(value) ? "-0x" : "0x") + std::string(digits.data(), end.ptr);
}

Difference compare_losses(const std::vector<double>& committed, const std::vector<double>& replayed,
                          const trainer::HistoryEntry& entry, bool exact) {
  for (std::size_t i = 0; i < committed.size(); ++i) {
    if (exact ? is_same_number(committed[i], replayed[i]) : is_close(committed[i], replayed[i])) continue;
    return both("the loss of window " + std::to_string(entry.window) + ", minibatch " +
                    std::to_string(entry.first + static_cast<int>(i)),
                committed[i], replayed[i]);
  }
  return {};
}

Difference compare_update(const trainer::HistoryEntry& entry, const trainer::ReferenceStep::Update& update,
                          bool exact) {
  const std::string name = "the update of window " + std::to_string(entry.window);
  if (!entry.skipped && !update.finite) return name + " was applied, but in the replay its gradient is not finite";
  if (!entry.skipped || !update.finite || !exact) return {};
  if (entry.norm_limit == 0) return name + " was skipped, but in the replay its gradient is finite";
  if (update.gradient_norm > entry.norm_limit) return {};
  return name + " was skipped because its gradient's norm was above " + shortest_text(entry.norm_limit) +
         ", but in the replay it is " + shortest_text(update.gradient_norm);
}

Result<Difference> compare_state(CheckpointStore& store, const storage::Manifest& manifest,
                                 const trainer::TrainOptions& options, const trainer::ReferenceRun& run, bool exact) {
  const std::string name = "checkpoint " + to_string(manifest.name);
  if (manifest.applied != run.applied()) {
    return Difference(name + ": " + std::to_string(manifest.applied) + " updates applied were committed, " +
                      std::to_string(run.applied()) + " are replayed");
  }
  if (exact && manifest.clip_scale != run.clip_scale()) {
    return Difference(name + ": the last gradient was multiplied by " + shortest_text(manifest.clip_scale) +
                      ", in the replay by " + shortest_text(run.clip_scale()));
  }
  for (int block = 0; block < run.blocks(); ++block) {
    const trainer::StageState here = stored_part(manifest, run.state(block));
    const trainer::StageState there = room_like(here);
    EVERSTEP_TRY(trainer::restore_stage(store.files(), manifest, options.model, options.accumulation, run.layout(block),
                                        there, kCompareThreads));
    const auto committed = state_tensors(options.model, options.accumulation, run.layout(block), there);
    const auto replayed = state_tensors(options.model, options.accumulation, run.layout(block), here);
    const Difference found = exact ? compare_bits(committed, replayed) : compare_norms(committed, replayed);
    if (found) return Difference(name + ", " + *found);
  }
  return Difference();
}

trainer::StageState stored_part(const storage::Manifest& manifest, trainer::StageState state) {
  if (!manifest.has(storage::StateKind::kPrevious)) state.previous = {};
  if (!manifest.has(storage::StateKind::kGradients)) state.gradients = {};
  if (!manifest.has(storage::StateKind::kProvisional)) state.provisional = {};
  return state;
}

}  // namespace everstep::launcher
