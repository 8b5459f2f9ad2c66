#include "elastic/sim/stand_in.h"

#include <bit>
#include <initializer_list>

namespace everstep::elastic::sim {
namespace {

std::uint64_t mixed(std::initializer_list<std::uint64_t> words) {
  std::uint64_t hash = 0x9E3779B97F4A7C15;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0xBF58476D1CE4E5B9;
    hash ^= hash >> 29;
  }
  return hash;
}

std::uint64_t word(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

BlockState initial_block(std::uint64_t seed, int block) { return {mixed({seed, word(block)}), 0}; }

std::uint64_t gradient_of(std::uint64_t seed, int block, const Consumed& minibatch, const BlockState& on) {
  return mixed({seed, word(block), word(minibatch.position), word(minibatch.sample), on.weights});
}

bool is_skipped(std::uint64_t seed, std::int64_t window) { return mixed({seed, 1, word(window)}) % 7 == 0; }

std::optional<BadGradient> bad_gradient(std::uint64_t seed) {
  const std::uint64_t drawn = mixed({seed, 2});
  if (drawn % 4 > 1) return std::nullopt;
  return BadGradient{{kWindow + static_cast<std::int64_t>((drawn >> 8U) % (std::uint64_t{8} * kWindow))},
                     drawn % 4 == 0};
}

bool is_bad_data(std::uint64_t seed, Position position) {
  const auto bad = bad_gradient(seed);
  return bad && bad->always && bad->position == position;
}

BlockState updated(const BlockState& before, const std::vector<Gradient>& gradients, std::int64_t version) {
  std::uint64_t sum = 0;
  for (const Gradient& gradient : gradients) sum = std::rotl(sum, 7) + gradient.value;
  BlockState after;
  after.moments = mixed({before.moments, sum});
  after.weights = mixed({before.weights, after.moments, sum, word(version)});
  return after;
}

Reference::Reference(std::uint64_t seed) : seed_(seed), states_(1) {
  for (int block = 0; block < kBlocks; ++block) states_[0][block] = initial_block(seed, block);
}

const std::array<BlockState, kBlocks>& Reference::at(std::int64_t window) {
  while (std::ssize(states_) <= window) advance();
  return states_[window];
}

void Reference::advance() {
  const std::int64_t window = std::ssize(states_) - 1;
  std::array<BlockState, kBlocks> next = states_.back();
  if (!is_skipped(seed_, window)) {
    for (int block = 0; block < kBlocks; ++block) {
      std::vector<Gradient> gradients;
      for (std::int64_t at = window * kWindow; at < (window + 1) * kWindow; ++at) {
        if (is_bad_data(seed_, {at})) continue;
        gradients.push_back({at, gradient_of(seed_, block, {at, at}, next[block])});
      }
      next[block] = updated(next[block], gradients, window);
    }
  }
  states_.push_back(next);
}

std::set<std::int64_t> Reference::skipped_before(std::int64_t window) const {
  std::set<std::int64_t> skipped;
  for (std::int64_t at = 0; at < window; ++at) {
    if (is_skipped(seed_, at)) skipped.insert(at);
  }
  return skipped;
}

}  // namespace everstep::elastic::sim
