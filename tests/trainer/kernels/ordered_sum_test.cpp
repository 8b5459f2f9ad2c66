#include "trainer/kernels/ordered_sum.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/update/loops.h"

namespace everstep::trainer::kernels {
namespace {

// The documented order, one term after the other.
double naive_sum(const std::vector<double>& terms) {
  double total = 0;
  for (std::size_t first = 0; first < terms.size(); first += 4096) {
    double partial[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (std::size_t i = 0; i < 4096 && first + i < terms.size(); ++i) partial[i % 8] += terms[first + i];
    total += ((((((partial[0] + partial[1]) + partial[2]) + partial[3]) + partial[4]) + partial[5]) + partial[6]) +
             partial[7];
  }
  return total;
}

// As the kernels do it: a block of threads per chunk, each step by all threads before the next; then one thread.
template <typename Term>
double sum_by_blocks(const Term& term, std::int64_t count) {
  std::vector<double> chunks;
  for (std::int64_t chunk = 0; chunk < sum_chunks(count); ++chunk) {
    std::vector<double> terms(kSumChunk, 1e300);
    std::vector<double> lanes(kSumLanes, 1e300);
    const ChunkByBlock block{terms.data(), lanes.data()};
    const std::int64_t first = chunk * kSumChunk;
    const std::int64_t end = std::min(count, first + kSumChunk);
    for (int thread = kThreads; thread-- > 0;) block.gather(term, first, end, thread, kThreads);
    for (int thread = kThreads; thread-- > 0;) block.add_lanes(end - first, thread);
    chunks.push_back(block.total());
  }
  return joined(chunks.data(), std::ssize(chunks));
}

TEST(OrderedSum, IsTheSameByLoopByBlocksAndByHand) {
  for (const std::int64_t size : kSizes) {
    for (const bool edges : {false, true}) {
      const std::vector<float> values = edges ? edge_floats(size, 1) : random_floats(size, 1);
      std::vector<double> terms;
      for (const float value : values) terms.push_back(static_cast<double>(value) * static_cast<double>(value));
      const double expected = naive_sum(terms);
      EXPECT_TRUE(same(sum_of_squares(values), expected)) << size;
      EXPECT_TRUE(same(sum_by_blocks(SquareOf<float>{values.data()}, size), expected)) << size;
    }
  }
}

TEST(OrderedSum, TakesFixedPointAsTheFloatsItStandsFor) {
  for (const std::int64_t size : kSizes) {
    std::vector<std::int64_t> sums;
    std::vector<double> terms;
    for (const float value : random_floats(size, 2)) {
      sums.push_back(std::llrint(static_cast<double>(value) * 0x1p48));
      const auto narrow = static_cast<float>(static_cast<double>(sums.back()) * 0x1p-48);
      terms.push_back(static_cast<double>(narrow) * static_cast<double>(narrow));
    }
    EXPECT_TRUE(same(sum_of_squares(sums), naive_sum(terms))) << size;
    EXPECT_TRUE(same(sum_by_blocks(SquareOf<std::int64_t>{sums.data()}, size), naive_sum(terms))) << size;
  }
}

class Entropies : public testing::TestWithParam<std::int64_t> {
 protected:
  static constexpr std::int64_t kClasses = 5;

  Entropies() : rows_(GetParam()), log_probabilities_(random_floats(rows_ * kClasses, 3, -8, 3)) {
    const RandomStream random{20, 21};
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto draw = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(row), kClasses + 2));
      labels_.push_back(draw < kClasses ? draw : kNoLabel);
      if (labels_.back() != kNoLabel) ++labelled_;
    }
  }

  EntropyTerm term() const { return {log_probabilities_.data(), labels_.data(), kClasses}; }

  std::int64_t rows_;
  std::vector<float> log_probabilities_;
  std::vector<std::int64_t> labels_;
  std::int64_t labelled_ = 0;
};

TEST_P(Entropies, AreSummedInOrderAndAveraged) {
  std::vector<double> terms;
  for (std::int64_t row = 0; row < rows_; ++row) {
    terms.push_back(labels_[row] < 0 ? 0.0 : -double{log_probabilities_[row * kClasses + labels_[row]]});
  }
  const double expected = naive_sum(terms);
  EXPECT_TRUE(same(ordered_sum(term(), rows_), expected));
  EXPECT_TRUE(same(sum_by_blocks(term(), rows_), expected));
  std::int64_t counted = 0;
  for (int thread = 0; thread < kThreads; ++thread) counted += count_labels(labels_.data(), rows_, thread, kThreads);
  EXPECT_EQ(counted, labelled_);
  const auto mean = static_cast<float>(labelled_ == 0 ? 0.0 : expected / static_cast<double>(labelled_));
  EXPECT_TRUE(same(mean_entropy(expected, counted), mean));
}

TEST_P(Entropies, HaveTheGradientOfTheirFormula) {
  const float scale = entropy_scale(0.25, labelled_);
  EXPECT_EQ(scale, static_cast<float>(0.25 / static_cast<double>(std::max<std::int64_t>(labelled_, 1))));
  std::vector<float> expected;
  for (std::int64_t i = 0; i < rows_ * kClasses; ++i) {
    const std::int64_t label = labels_[i / kClasses];
    float value = label < 0 ? 0.0F : probability(log_probabilities_[i]);
    if (label == i % kClasses) value -= 1;
    expected.push_back(value * scale);
  }
  for (const std::int64_t blocks : block_counts(rows_, 1)) {
    std::vector<float> gradient(expected.size(), -1.0F);
    walk_rows(blocks, rows_,
              EntropyGradient{log_probabilities_.data(), labels_.data(), gradient.data(), kClasses, scale});
    EXPECT_TRUE(same(gradient, expected));
  }
}

INSTANTIATE_TEST_SUITE_P(OrderedSum, Entropies, testing::Values(0, 1, 7, 8, 9, 256, 4096, 4097, 9000));

}  // namespace
}  // namespace everstep::trainer::kernels
