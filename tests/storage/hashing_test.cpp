#include "storage/hashing.h"

#include <string>

#include <gtest/gtest.h>

namespace everstep::storage {
namespace {

TEST(Digest, HasSixtyFourDigits) {
  Digest digest;
  digest.bytes[0] = std::byte{0xab};
  digest.bytes[31] = std::byte{0x01};
  const std::string text = "ab" + std::string(60, '0') + "01";
  EXPECT_EQ(to_string(digest), text);
  EXPECT_EQ(parse_digest(text), digest);
}

TEST(Digest, IsNothingElse) {
  const std::string good(64, 'a');
  EXPECT_TRUE(parse_digest(good));
  for (const std::string& bad : {std::string(), std::string(62, 'a'), std::string(63, 'a'), std::string(66, 'a'),
                                 std::string(64, 'A'), std::string(64, 'g'), " " + std::string(63, 'a')}) {
    EXPECT_FALSE(parse_digest(bad)) << bad;
  }
}

TEST(Digest, DiffersWithAnyBit) {
  const Digest zero;
  EXPECT_TRUE(equal_digests(zero, Digest()));
  for (std::size_t bit = 0; bit < 256; ++bit) {
    Digest other;
    other.bytes[bit / 8] = std::byte{1} << (bit % 8);
    EXPECT_FALSE(equal_digests(zero, other)) << bit;
  }
}

}  // namespace
}  // namespace everstep::storage
