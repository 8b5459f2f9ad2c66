#include "trainer/torch/dropout.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/torch/test_model.h"

namespace everstep::trainer {
namespace {

TEST(Dropout, DrawsTheHalfWordsOfPhilox) {
  const RandomStream stream{0x123456789ABCDEF0, 0xFEDCBA9876543210};
  std::vector<std::uint16_t> bits(1000);
  random_half_words(stream, bits);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto words = philox({0x9ABCDEF0, 0x12345678}, {static_cast<std::uint32_t>(i / 8), 0, 0x76543210, 0xFEDCBA98});
    EXPECT_EQ(bits[i], words[i % 8 / 2] >> (i % 2 * 16) & 0xFFFF) << i;
  }
}

class Ones : public testing::Test {
 protected:
  Ones() { config_.dropout = 0.2; }

  at::Tensor dropped(Position position, RandomUse use = RandomUse::kAttentionDropout, int block = 1) const {
    return drop_out(at::ones({400, 250}), {config_, block, batch_, position, true}, use);
  }

  ModelConfig config_ = small_gpt();
  BatchTensors batch_;
};

TEST_F(Ones, AreDroppedAtTheRateAndScaledSoThatTheMeanStays) {
  const at::Tensor values = dropped(Position{3});
  EXPECT_NEAR(values.eq(0).to(at::kDouble).mean().item<double>(), 0.2, 0.005);
  EXPECT_NEAR(values.max().item<double>(), 1 / 0.8, 1e-4);
  EXPECT_NEAR(values.mean().item<double>(), 1, 0.01);
}

TEST_F(Ones, AreDroppedByWhatTheyAreForAlone) {
  EXPECT_TRUE(at::equal(dropped(Position{3}), dropped(Position{3})));
  EXPECT_FALSE(at::equal(dropped(Position{3}), dropped(Position{4})));
  EXPECT_FALSE(at::equal(dropped(Position{3}), dropped(Position{3}, RandomUse::kFeedForwardDropout)));
  EXPECT_FALSE(at::equal(dropped(Position{3}), dropped(Position{3}, RandomUse::kAttentionDropout, 2)));
}

TEST_F(Ones, StayWhenNothingIsDroppedOrTrained) {
  const at::Tensor ones = at::ones({3, 4});
  EXPECT_TRUE(at::equal(drop_out(ones, {config_, 1, batch_, Position{}, false}, RandomUse::kAttentionDropout), ones));
  config_.dropout = 0;
  EXPECT_TRUE(at::equal(drop_out(ones, {config_, 1, batch_, Position{}, true}, RandomUse::kAttentionDropout), ones));
}

}  // namespace
}  // namespace everstep::trainer
