#include "trainer/wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using testing::HasSubstr;

FrameHeader some_frame() {
  FrameHeader frame;
  frame.lineage = 0xFEDCBA9876543210;
  frame.generation = {4};
  frame.kind = FrameKind::kWeights;
  frame.window = 1234567890123;
  frame.round = 2;
  frame.minibatch = 31;
  frame.stage = 7;
  frame.piece = 3;
  frame.version = {1234567890122};
  frame.length = 1 << 20;
  return frame;
}

TEST(Frame, ComesBackAsItWas) {
  EXPECT_EQ(decode_frame(encode_frame(some_frame())).value(), some_frame());
  EXPECT_EQ(decode_frame(encode_frame({})).value(), FrameHeader());
}

TEST(Frame, HasTheSameBytesOnEveryMachine) {
  FrameHeader frame;
  frame.lineage = 0x0807060504030201;
  const FrameBytes bytes = encode_frame(frame);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(std::to_integer<int>(bytes[8 + i]), i + 1);
}

TEST(Frame, IsRefusedAfterAnyChangeOfOneByte) {
  const FrameBytes good = encode_frame(some_frame());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      FrameBytes bad = good;
      bad[at] ^= static_cast<std::byte>(change);
      const Result<FrameHeader> decoded = decode_frame(bad);
      ASSERT_FALSE(decoded) << "byte " << at << " changed by " << change;
      EXPECT_EQ(decoded.error().code, ErrorCode::kInvalidArgument);
    }
  }
}

TEST(Frame, IsRefusedAtAnyOtherLength) {
  const FrameBytes good = encode_frame(some_frame());
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode_frame(std::span(good).first(length)));
  }
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.push_back({});
  EXPECT_FALSE(decode_frame(longer));
}

TEST(Frame, MatchesWhatIsExpectedUpToOneVersion) {
  const FrameHeader expected = some_frame();
  FrameHeader received = expected;
  EXPECT_TRUE(check_frame(received, expected));
  received.version = {expected.version.value + 1};
  EXPECT_TRUE(check_frame(received, expected));
  received.version = {expected.version.value - 1};
  EXPECT_TRUE(check_frame(received, expected));
  received.version = {expected.version.value + 2};
  EXPECT_FALSE(check_frame(received, expected));
}

TEST(Frame, OfAnotherLineageOrGenerationIsStale) {
  const FrameHeader expected = some_frame();
  FrameHeader received = expected;
  received.lineage ^= 1;
  EXPECT_EQ(check_frame(received, expected).error().code, ErrorCode::kStaleGeneration);
  received = expected;
  received.generation = {3};
  const Error error = check_frame(received, expected).error();
  EXPECT_EQ(error.code, ErrorCode::kStaleGeneration);
  EXPECT_THAT(error.message, HasSubstr("generation 3 instead of 4"));
}

TEST(Frame, AnyOtherDifferenceIsRefusedWithBothSidesNamed) {
  const FrameHeader expected = some_frame();
  std::vector<FrameHeader> others(7, expected);
  others[0].kind = FrameKind::kActivation;
  others[1].window += 1;
  others[2].round += 1;
  others[3].minibatch += 1;
  others[4].stage += 1;
  others[5].piece += 1;
  others[6].length += 1;
  for (const FrameHeader& received : others) {
    const Status status = check_frame(received, expected);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInternal);
    EXPECT_THAT(status.error().message, HasSubstr("received the " + to_string(received)));
    EXPECT_THAT(status.error().message, HasSubstr("where the " + to_string(expected)));
  }
  EXPECT_EQ(to_string(expected), "weights of window 1234567890123, round 2, minibatch 31, stage 7, piece 3");
}

}  // namespace
}  // namespace everstep::trainer
