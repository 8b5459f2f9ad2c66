#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/ucx/loopback_workers.h"
#include "tests/trainer/ucx/stranger.h"
#include "trainer/ucx/frame_tag.h"
#include "trainer/ucx/lifeline/handshake.h"
#include "trainer/ucx/payload_checksum.h"
#include "trainer/ucx/ucx_engine.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A real worker 0, and a worker 1 that speaks raw UCX and can say anything.
class UcxGarbage : public testing::Test {
 protected:
  UcxGarbage() {
    auto listening = listen_for_lifelines({"127.0.0.1", 0, 0}).value();
    const std::vector<std::string> addresses{victim_->address(), to_text(listening.address)};
    LifelinePort port(std::move(listening.socket), {});
    engine_ = UcxEngine::create({.device = "lo"}).value();
    std::thread connecting(
        [&] { connection_ = std::move(victim_->connect(test_group(0, addresses), 10s).connection).value(); });
    HandshakeRequest mine{1, {}, engine_->address().value(), unkeyed_seal, {}};
    for (int worker = 0; worker < 2; ++worker) {
      mine.members.push_back({test_worker_id(worker), parse_lifeline_address(addresses[worker]).value()});
    }
    const auto inbox = port.open({kTestLineage, Generation{1}, 0}).value();
    HandshakeOutcome hands = shake_hands(*inbox, mine, 10s);
    connecting.join();
    EXPECT_TRUE(engine_->connect({hands.peers.value().ucx_addresses[0]}));
    lifeline_ = std::move(hands.peers.value().sockets[0]);
  }

  ~UcxGarbage() override { static_cast<void>(engine_.release()); }  // as after any failure

  void send(FramePart part, std::span<const std::byte> bytes) {
    kept_.emplace_back(bytes.begin(), bytes.end());
    engine_->send(0, frame_tag(1, Channel::kTensors, part, 0), kept_.back(), [](const auto&) {});
  }

  // What worker 0 makes of it when it expects a frame of 1000 bytes.
  Error outcome() {
    const ReceiveId receive =
        connection_.transport->post_receive(1, Channel::kTensors, expected(), allocate_zeroed(expected().length));
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!connection_.transport->ready(receive) && std::chrono::steady_clock::now() < deadline) engine_->progress();
    const Result<FrameHeader> received = connection_.transport->wait(receive, 0ms);
    return received ? Error{ErrorCode::kCancelled, "it was accepted", {}} : received.error();
  }

  static FrameHeader expected() {
    FrameHeader header;
    header.length = 1000;
    return header;
  }

  static FrameBytes good_header() { return encode_frame({expected(), payload_checksum(allocate_zeroed(1000))}); }

  std::unique_ptr<UcxEngine> engine_;
  FileDescriptor lifeline_;
  std::unique_ptr<UcxListener> victim_ = UcxListener::listen({}).value();
  UcxConnection connection_;
  std::vector<std::vector<std::byte>> kept_ = reserved();

 private:
  static std::vector<std::vector<std::byte>> reserved() {
    std::vector<std::vector<std::byte>> kept;
    kept.reserve(8);
    return kept;
  }
};

TEST_F(UcxGarbage, AnHonestFrameIsAccepted) {
  send(FramePart::kHeader, good_header());
  send(FramePart::kPayload, std::vector<std::byte>(1000));
  EXPECT_EQ(outcome().message, "it was accepted");
}

TEST_F(UcxGarbage, NoiseInsteadOfAHeaderIsRefused) {
  send(FramePart::kHeader, std::vector<std::byte>(kFrameHeaderBytes, std::byte{0x5A}));
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("worker 1 sent garbage"));
}

TEST_F(UcxGarbage, AHeaderOfAnotherLengthIsRefused) {
  const FrameBytes header = good_header();
  send(FramePart::kHeader, std::span(header).first(40));
  EXPECT_THAT(outcome().message, HasSubstr("worker 1 sent garbage"));
}

TEST_F(UcxGarbage, AnEndlessHeaderIsRefused) {
  send(FramePart::kHeader, std::vector<std::byte>(1 << 20));
  EXPECT_THAT(outcome().message, HasSubstr("worker 1 sent garbage"));
}

// Nobody allocates what a header asks for.
TEST_F(UcxGarbage, AHeaderThatPromisesAnotherLengthThanThePlanIsRefused) {
  for (const std::uint64_t length : {std::uint64_t{999}, std::uint64_t{1} << 60}) {
    FrameHeader header = expected();
    header.length = length;
    EXPECT_THAT(check_frame(header, expected()).error().message, HasSubstr("length " + std::to_string(length)));
  }
  FrameHeader header = expected();
  header.length = std::uint64_t{1} << 60;
  send(FramePart::kHeader, encode_frame({header, 0}));
  send(FramePart::kPayload, std::vector<std::byte>(1000));
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("instead of 1000"));
}

TEST_F(UcxGarbage, AFrameOfAnotherGenerationIsRefused) {
  FrameHeader header = expected();
  header.generation = Generation{7};
  send(FramePart::kHeader, encode_frame({header, payload_checksum(allocate_zeroed(1000))}));
  send(FramePart::kPayload, std::vector<std::byte>(1000));
  EXPECT_EQ(outcome().code, ErrorCode::kStaleGeneration);
}

TEST_F(UcxGarbage, AFrameOfAnotherLineageIsRefused) {
  FrameHeader header = expected();
  header.lineage = 99;
  send(FramePart::kHeader, encode_frame({header, payload_checksum(allocate_zeroed(1000))}));
  send(FramePart::kPayload, std::vector<std::byte>(1000));
  EXPECT_EQ(outcome().code, ErrorCode::kStaleGeneration);
}

TEST_F(UcxGarbage, NoiseOnTheLifelineEndsTheTransportAndNamesThePeer) {
  say(lifeline_, "xyzxyz");
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("worker 1 sent garbage on its lifeline"));
}

TEST_F(UcxGarbage, APayloadLongerThanItsHeaderSaysIsRefused) {
  send(FramePart::kHeader, good_header());
  send(FramePart::kPayload, std::vector<std::byte>(5000));
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("from worker 1 is refused: a message is longer than expected"));
}

TEST_F(UcxGarbage, APayloadShorterThanItsHeaderSaysIsRefused) {
  send(FramePart::kHeader, good_header());
  send(FramePart::kPayload, std::vector<std::byte>(999));
  EXPECT_THAT(outcome().message, HasSubstr("from worker 1 is refused: it is shorter than expected"));
}

TEST_F(UcxGarbage, APayloadThatWasDamagedIsRefused) {
  send(FramePart::kHeader, good_header());
  std::vector<std::byte> payload(1000);
  payload[999] = std::byte{1};
  send(FramePart::kPayload, payload);
  const Error error = outcome();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_THAT(error.message, HasSubstr("from worker 1 was damaged on its way"));
}

}  // namespace
}  // namespace everstep::trainer
