#include <cstdint>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/handmade_peer.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

FrameHeader expected() {
  FrameHeader header;
  header.length = 1000;
  return header;
}

std::string text_of(const FrameHeader& header) {
  const FrameBytes bytes = encode_frame(header);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string kPayload(1000, 'p');

// What a peer that is a member can do by saying nonsense.
class SocketGarbage : public OverEachWire {
 protected:
  void send(std::string_view bytes) { write_all(peer_.channel(Channel::kTensors), bytes); }

  // What worker 0 makes of it when it expects a frame of 1000 bytes.
  Error outcome() {
    Transport& transport = *peer_.connection.transport;
    const ReceiveId receive = transport.post_receive(1, Channel::kTensors, expected(), into_.part(0, 1000));
    const Result<FrameHeader> received = transport.wait(receive, kSoon);
    return received ? Error{ErrorCode::kCancelled, "it was accepted", {}} : received.error();
  }

  // Nothing of a payload may be written where it does not belong.
  bool wrote_behind_the_buffer() const {
    const auto rest = into_.part(1000, 4000).as<const char>();
    return std::any_of(rest.begin(), rest.end(), [](char byte) { return byte != 0; });
  }

  HandmadePeer peer_{GetParam()};
  Buffer into_ = allocate_zeroed(5000);
};

TEST_P(SocketGarbage, AnHonestFrameIsAccepted) {
  send(text_of(expected()) + kPayload);
  EXPECT_EQ(outcome().message, "it was accepted");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(into_.data), 1000), kPayload);
}

TEST_P(SocketGarbage, AFrameThatComesInDropsIsAccepted) {
  std::thread dripping([&] {
    for (const char byte : text_of(expected()) + kPayload) send({&byte, 1});
  });
  EXPECT_EQ(outcome().message, "it was accepted");
  dripping.join();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(into_.data), 1000), kPayload);
}

TEST_P(SocketGarbage, NoiseInsteadOfAHeaderIsRefused) {
  send(std::string(kFrameHeaderBytes, 'Z'));
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("worker 1 sent garbage"));
}

TEST_P(SocketGarbage, EndlessNoiseIsRefusedAtItsFirstBytes) {
  send(std::string(300'000, 'Z'));
  EXPECT_THAT(outcome().message, HasSubstr("worker 1 sent garbage"));
  EXPECT_FALSE(wrote_behind_the_buffer());
}

// Nobody allocates what a header asks for.
TEST_P(SocketGarbage, AHeaderThatPromisesAnotherLengthThanThePlanIsRefused) {
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{999}, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    FrameHeader header = expected();
    header.length = length;
    EXPECT_THAT(check_frame(header, expected()).error().message, HasSubstr("length " + std::to_string(length)));
  }
  FrameHeader header = expected();
  header.length = ~std::uint64_t{0};
  send(text_of(header) + kPayload);
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("instead of 1000"));
}

TEST_P(SocketGarbage, AFrameOfAnotherGenerationIsRefused) {
  FrameHeader header = expected();
  header.generation = Generation{7};
  send(text_of(header) + kPayload);
  EXPECT_EQ(outcome().code, ErrorCode::kStaleGeneration);
}

TEST_P(SocketGarbage, AFrameOfAnotherLineageIsRefused) {
  FrameHeader header = expected();
  header.lineage = 99;
  send(text_of(header) + kPayload);
  EXPECT_EQ(outcome().code, ErrorCode::kStaleGeneration);
}

// The rest belongs to the next frame, whose header it cannot be.
TEST_P(SocketGarbage, APayloadLongerThanItsHeaderSaysSpoilsOnlyTheNextFrame) {
  send(text_of(expected()) + std::string(5000, 'p'));
  EXPECT_EQ(outcome().message, "it was accepted");
  EXPECT_FALSE(wrote_behind_the_buffer());
  EXPECT_THAT(outcome().message, HasSubstr("worker 1 sent garbage"));
}

TEST_P(SocketGarbage, APayloadThatEndsEarlyIsADeathAndNoFrame) {
  send(text_of(expected()) + kPayload.substr(1));
  peer_.streams.channels[static_cast<std::size_t>(Channel::kTensors)].reset();
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("worker 1 closed a connection"));
  EXPECT_EQ(peer_.connection.transport->lost(), (LostPeer{1, LostPeer::How::kClosed}));
}

TEST_P(SocketGarbage, AFrameOnAnotherChannelIsNotTaken) {
  write_all(peer_.channel(Channel::kRecords), text_of(expected()) + kPayload);
  send(text_of(expected()) + std::string(1000, 'q'));
  EXPECT_EQ(outcome().message, "it was accepted");
  EXPECT_EQ(into_.as<const char>()[0], 'q');
}

TEST_P(SocketGarbage, NoiseOnTheLifelineEndsTheTransportAndNamesThePeer) {
  using namespace std::string_view_literals;
  for (const std::string_view noise : {"xyzxyz"sv, "g\xFF\xFF"sv, "d\x02\0"sv}) {  // a kind and workers that are not
    HandmadePeer peer(GetParam());
    write_all(*peer.streams.lifeline, noise);
    Transport& transport = *peer.connection.transport;
    EXPECT_TRUE(comes_true([&] { return !transport.status(); }));
    EXPECT_EQ(transport.status().error().code, ErrorCode::kInternal);
    EXPECT_THAT(transport.status().error().message, HasSubstr("worker 1 sent garbage on its lifeline"));
  }
}

// A word of three bytes may come in three parts, and silence in between is no death.
TEST_P(SocketGarbage, HalfAWordOnTheLifelineWaitsForItsRest) {
  Transport& transport = *peer_.connection.transport;
  write_all(*peer_.streams.lifeline, "r");
  write_all(*peer_.streams.lifeline, std::string_view("\0", 1));
  EXPECT_EQ(peer_.connection.news->peer_renewed_at(), std::nullopt);
  write_all(*peer_.streams.lifeline, std::string_view("\0", 1));
  EXPECT_TRUE(comes_true([&] { return peer_.connection.news->peer_renewed_at().has_value(); }));
  EXPECT_TRUE(transport.status());
}

INSTANTIATE_TEST_SUITE_P(, SocketGarbage, testing::Values(Wire::kUnix, Wire::kTls, Wire::kCertificates), wire_name);

}  // namespace
}  // namespace everstep::trainer
