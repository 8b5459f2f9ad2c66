#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/ucx/frame_tag.h"
#include "trainer/ucx/payload_checksum.h"
#include "trainer/ucx/ucx_address.h"
#include "trainer/ucx/ucx_engine.h"
#include "trainer/ucx/ucx_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A real worker 0, and a worker 1 that speaks raw UCX and can say anything.
class UcxGarbage : public testing::Test {
 protected:
  UcxGarbage() {
    const auto listener = UcxListener::listen({.worker = 0}).value();
    auto lifelines = LifelineListener::listen({"127.0.0.1", 0}, {.lineage = 0, .worker = 1}, {}).value();
    engine_ = UcxEngine::create({.device = "lo"}).value();
    const UcxAddress victim = decode_address(listener->address()).value();
    const UcxAddress mine{1, lifelines.address(), engine_->address().value()};
    std::thread connecting([&] {
      transport_ = listener->connect({listener->address(), encode_address(mine)}, 10s).value();
    });
    lifelines_.emplace(std::move(lifelines).connect({victim.lifeline, mine.lifeline}, 10s).value());
    connecting.join();
    EXPECT_TRUE(engine_->connect({victim.ucx}));
  }

  ~UcxGarbage() override { static_cast<void>(engine_.release()); }  // as after any failure

  void send(FramePart part, std::span<const std::byte> bytes) {
    kept_.emplace_back(bytes.begin(), bytes.end());
    engine_->send(0, frame_tag(1, Channel::kTensors, part, 0), kept_.back(), [](const auto&) {});
  }

  // What worker 0 makes of it when it expects a frame of 1000 bytes.
  Error outcome() {
    const ReceiveId receive =
        transport_->post_receive(1, Channel::kTensors, expected(), allocate_zeroed(expected().length));
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!transport_->ready(receive) && std::chrono::steady_clock::now() < deadline) engine_->progress();
    const Result<FrameHeader> received = transport_->wait(receive, 0ms);
    return received ? Error{ErrorCode::kCancelled, "it was accepted", {}} : received.error();
  }

  static FrameHeader expected() {
    FrameHeader header;
    header.length = 1000;
    return header;
  }

  static FrameBytes good_header() { return encode_frame({expected(), payload_checksum(allocate_zeroed(1000))}); }

  std::unique_ptr<UcxEngine> engine_;
  std::optional<Lifelines> lifelines_;
  std::unique_ptr<Transport> transport_;
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
