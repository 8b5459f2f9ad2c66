#include "storage/retention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep::storage {
namespace {

using Candidates = std::vector<RetentionCandidate>;
using Kept = std::vector<std::size_t>;

RetentionCandidate candidate(std::int64_t sequence, std::int64_t version, std::optional<double> loss = {},
                             bool pinned = false) {
  return {.sequence = sequence,
          .name = {.generation = {1}, .position = {version * 4}, .nonce = static_cast<std::uint32_t>(sequence)},
          .version = {version},
          .validation_loss = loss,
          .pinned = pinned};
}

// The second opinion: asks for each checkpoint alone how many others have a better claim.
Kept keep_by_counting(const Candidates& all, const RetentionOptions& options) {
  Kept kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RetentionCandidate& one = all[i];
    const auto others = [&](auto&& better) { return std::ranges::count_if(all, better); };
    const auto newer = others([&](const auto& other) { return other.sequence > one.sequence; });
    const auto first_there = others([&](const auto& other) {
      return other.version == one.version &&
             (other.name.position < one.name.position ||
              (other.name.position == one.name.position && other.sequence > one.sequence));
    });
    const auto measured = [](const RetentionCandidate& c) {
      return c.validation_loss && std::isfinite(*c.validation_loss);
    };
    const auto lower = others([&](const auto& other) {
      return measured(one) && measured(other) &&
             (*other.validation_loss < *one.validation_loss ||
              (*other.validation_loss == *one.validation_loss && other.sequence < one.sequence));
    });
    const bool is_multiple = options.keep_every > 0 && one.version.value % options.keep_every == 0;
    if (one.pinned || newer == 0 || newer < options.keep_last || (is_multiple && first_there == 0) ||
        (measured(one) && lower < options.keep_best)) {
      kept.push_back(i);
    }
  }
  return kept;
}

TEST(Retention, KeepsTheLastOnes) {
  const Candidates candidates = {candidate(1, 10), candidate(3, 30), candidate(2, 20), candidate(4, 40)};
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 2}), (Kept{1, 3}));
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 9}), (Kept{0, 1, 2, 3}));
}

TEST(Retention, KeepsTheNewestWhateverTheOptionsSay) {
  const Candidates candidates = {candidate(1, 10), candidate(3, 30), candidate(2, 20)};
  for (const int keep_last : {1, 0, -1, std::numeric_limits<int>::min()}) {
    EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = keep_last, .keep_every = -1, .keep_best = -1}), (Kept{1}));
  }
  EXPECT_TRUE(checkpoints_to_keep({}, {}).empty());
}

TEST(Retention, KeepsOneCheckpointPerMultiple) {
  Candidates candidates = {candidate(1, 10), candidate(2, 15), candidate(3, 20), candidate(4, 20),
                           candidate(5, 20), candidate(6, 21), candidate(7, 22)};
  candidates[4].name.position.value += 2;  // a cut inside window 20
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 2, .keep_every = 10}), (Kept{0, 3, 5, 6}));
}

TEST(Retention, KeepsTheBestThatWereMeasured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Candidates candidates = {candidate(1, 1, 3.0), candidate(2, 2, 2.0),       candidate(3, 3, 2.0),
                                 candidate(4, 4, nan), candidate(5, 5, -infinity), candidate(6, 6)};
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 1, .keep_best = 1}), (Kept{1, 5}));
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 1, .keep_best = 9}), (Kept{0, 1, 2, 5}));
}

TEST(Retention, KeepsWhatIsPinned) {
  EXPECT_EQ(checkpoints_to_keep({candidate(1, 1, {}, true), candidate(2, 2), candidate(3, 3)}, {.keep_last = 1}),
            (Kept{0, 2}));
}

TEST(Retention, DoesNotCountWhatIsDamagedAndKeepsItOnlyIfItIsPinnedOrTheNewest) {
  Candidates candidates = {candidate(1, 10, 2.0), candidate(2, 20, 1.0), candidate(3, 30), candidate(4, 40, 1.0)};
  candidates[1].damaged = true;
  candidates[2].damaged = true;
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 2}), (Kept{0, 3}));
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 1, .keep_every = 10}), (Kept{0, 3}));
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 1, .keep_best = 2}), (Kept{0, 3}));
  candidates[1].pinned = true;
  candidates[3].damaged = true;
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 1}), (Kept{0, 1, 3}));
}

TEST(Retention, KeepsAsManyOfThoseThatTheNewestDescendsFrom) {
  Candidates candidates = {candidate(1, 10), candidate(2, 20), candidate(3, 30), candidate(4, 40), candidate(5, 21)};
  for (std::size_t i = 1; i < 4; ++i) candidates[i].parent = candidates[i].sequence - 1;
  candidates[4].parent = 2;
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 2}), (Kept{1, 3, 4}));
  candidates[1].damaged = true;
  EXPECT_EQ(checkpoints_to_keep(candidates, {.keep_last = 2}), (Kept{0, 3, 4}));
}

// Every set of three checkpoints of these properties, in two orders, under every combination of small options.
TEST(Retention, AgreesWithCountingOnEverySmallCase) {
  const std::array<std::optional<double>, 3> losses = {std::nullopt, 1.0, std::numeric_limits<double>::quiet_NaN()};
  Candidates properties;
  for (const std::int64_t version : {1, 2, 4}) {
    for (const auto& loss : losses) {
      for (const bool pinned : {false, true}) properties.push_back(candidate(0, version, loss, pinned));
    }
  }
  std::vector<RetentionOptions> options;
  for (const int last : {0, 1, 2}) {
    for (const int every : {0, 2}) {
      for (const int best : {0, 1, 2}) options.push_back({.keep_last = last, .keep_every = every, .keep_best = best});
    }
  }
  int cases = 0;
  for (const std::array<std::int64_t, 3>& order : {std::array<std::int64_t, 3>{1, 2, 3}, {2, 3, 1}}) {
    for (std::size_t set = 0; set < properties.size() * properties.size() * properties.size(); ++set) {
      Candidates candidates = {properties[set % properties.size()],
                               properties[set / properties.size() % properties.size()],
                               properties[set / properties.size() / properties.size()]};
      for (std::size_t i = 0; i < 3; ++i) candidates[i].sequence = order[i];
      for (const RetentionOptions& option : options) {
        ASSERT_EQ(checkpoints_to_keep(candidates, option), keep_by_counting(candidates, option));
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 2 * 18 * 18 * 18 * 18);
}

TEST(Retention, AgreesWithCountingOnLongHistories) {
  EXPECT_TRUE(rc::check([] {
    const auto sequences = *rc::gen::unique<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 1000));
    Candidates candidates;
    for (const std::int64_t sequence : sequences) {
      candidates.push_back(candidate(sequence, *rc::gen::inRange<std::int64_t>(0, 30)));
      candidates.back().name.position.value += *rc::gen::inRange<std::int64_t>(0, 3);
      candidates.back().pinned = *rc::gen::inRange(0, 10) == 0;
      if (*rc::gen::arbitrary<bool>()) candidates.back().validation_loss = *rc::gen::inRange(0, 5);
    }
    const RetentionOptions options{.keep_last = *rc::gen::inRange(0, 6),
                                   .keep_every = *rc::gen::inRange<std::int64_t>(0, 6),
                                   .keep_best = *rc::gen::inRange(0, 4)};
    RC_ASSERT(checkpoints_to_keep(candidates, options) == keep_by_counting(candidates, options));
  }));
}

}  // namespace
}  // namespace everstep::storage
