#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"

namespace everstep::elastic::sim {

// Training as exact integers: blocks with weights and moments, minibatches with gradients, windows with one update. A
// minibatch that is lost, done twice or done on other weights, a moment or a skipped window that is forgotten change
// every number that follows. Updates are synchronous, so the numbers do not depend on who computed what.

inline constexpr int kBlocks = 4;
inline constexpr int kWindow = 12;  // minibatches per update

constexpr std::int64_t window_of(Position position) { return position.value / kWindow; }

struct BlockState {
  std::uint64_t weights = 0;
  std::uint64_t moments = 0;

  bool operator==(const BlockState&) const = default;
};

struct Gradient {
  std::int64_t position = 0;  // of the minibatch
  std::uint64_t value = 0;

  auto operator<=>(const Gradient&) const = default;  // NOLINT(modernize-use-nullptr)
};
using Gradients = std::map<int, std::vector<Gradient>>;  // by block

// What the ledger says about a minibatch.
struct Consumed {
  std::int64_t position = 0;
  std::int64_t sample = 0;

  auto operator<=>(const Consumed&) const = default;  // NOLINT(modernize-use-nullptr)
};

// What a worker, or a checkpoint, knows.
struct TrainingState {
  Position position;
  std::int64_t version = 0;
  std::map<int, BlockState> blocks;  // those that it has
  Gradients gradients;               // of an unfinished window
  bool is_spoilt = false;            // one of them is no number
  std::set<std::int64_t> skipped;    // windows
  std::vector<Consumed> history;     // since the last checkpoint at least, ascending
};

BlockState initial_block(std::uint64_t seed, int block);

std::uint64_t gradient_of(std::uint64_t seed, int block, const Consumed& minibatch, const BlockState& on);

// Whether the window's gradient is not finite, so that its update is left out.
bool is_skipped(std::uint64_t seed, std::int64_t window);

// A minibatch whose gradient is no number, if there is one: always, so that training can only go on without it, or on
// the worker that comes to it first.
struct BadGradient {
  Position position;
  bool always = false;
};
std::optional<BadGradient> bad_gradient(std::uint64_t seed);
bool is_bad_data(std::uint64_t seed, Position position);

// The sum depends on the order, as floating point does: callers bring it into that of the minibatches.
BlockState updated(const BlockState& before, const std::vector<Gradient>& gradients, std::int64_t version);

// The same on one process, in order, undisturbed.
class Reference {
 public:
  explicit Reference(std::uint64_t seed);

  const std::array<BlockState, kBlocks>& at(std::int64_t window);  // before its update
  std::set<std::int64_t> skipped_before(std::int64_t window) const;

 private:
  void advance();

  std::uint64_t seed_;
  std::vector<std::array<BlockState, kBlocks>> states_;
};

}  // namespace everstep::elastic::sim
