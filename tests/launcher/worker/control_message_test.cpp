#include "launcher/worker/control_message.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "launcher/worker/control_socket.h"

namespace everstep::launcher {
namespace {

template <typename Message>
Message round_trip(const Message& message) {
  const auto decoded = decode_from_worker(encode(FromWorker(message)));
  EVERSTEP_CHECK(decoded.ok(), decoded.error().line());
  return std::get<Message>(*decoded);
}

TEST(ControlMessage, ComesBackAsItWas) {
  const Hello hello{"amdp D=4", std::string("\x00\xff raw", 6), {{"kernels", "AVX2"}}};
  EXPECT_EQ(round_trip(hello), hello);
  const Finished finished{100, 2, std::int64_t{5} << 30};
  EXPECT_EQ(round_trip(finished), finished);
  const Error error{ErrorCode::kDeadlineExceeded, "worker 2 is \"late\"\n", "wait"};
  EXPECT_EQ(round_trip(error), error);
  EXPECT_EQ(round_trip(Validation{7, 0.1}), (Validation{7, 0.1}));
  const storage::CheckpointName checkpoint{{2}, {1600}, 0x9f3a11c2};
  const trainer::ShardSaved saved{checkpoint, {0x1f2e3d4c, 0x9a8b7c6d}, 0.25};
  EXPECT_EQ(round_trip(saved), saved);
  EXPECT_EQ(round_trip(trainer::SaveFailed{checkpoint, error}), (trainer::SaveFailed{checkpoint, error}));
  EXPECT_EQ(round_trip(trainer::SaveSkipped{{1600}}), (trainer::SaveSkipped{{1600}}));
  for (const auto kind :
       {trainer::Verdict::Kind::kCommitted, trainer::Verdict::Kind::kAbandoned, trainer::Verdict::Kind::kUnknown}) {
    const ToWorker verdict = trainer::Verdict{checkpoint, kind};
    EXPECT_EQ(*decode_to_worker(encode(verdict)), verdict);
  }
  trainer::StepReport report;
  report.step = 3;
  report.loss = 0.1;
  report.gradient_norm = 2.5;
  report.learning_rate = 1e-4;
  report.skipped = true;
  report.norm_limit = 7.5;
  report.skipped_in_all = 12;
  report.skipped_in_a_row = 3;
  report.busy = 0.9;
  report.at = 123456789012345;
  const auto back = round_trip(report);
  EXPECT_EQ(back.step, 3);
  EXPECT_EQ(back.loss, 0.1);
  EXPECT_EQ(back.gradient_norm, 2.5);
  EXPECT_EQ(back.learning_rate, 1e-4);
  EXPECT_TRUE(back.skipped);
  EXPECT_EQ(back.norm_limit, 7.5);
  EXPECT_EQ(back.skipped_in_all, 12);
  EXPECT_EQ(back.skipped_in_a_row, 3);
  EXPECT_EQ(back.busy, 0.9);
  EXPECT_EQ(back.at, 123456789012345);
  const ToWorker start = Start{{"a", std::string("\0", 1), ""}};
  EXPECT_EQ(*decode_to_worker(encode(start)), start);
  EXPECT_EQ(*decode_to_worker(encode(ToWorker(Stop{}))), ToWorker(Stop{}));
}

TEST(ControlMessage, CarriesALossThatIsNotFinite) {
  trainer::StepReport report;
  report.loss = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(round_trip(report).loss));
}

TEST(ControlMessage, RefusesWhatItDidNotMake) {
  for (const char* text :
       {"", "[]", "{}", R"({"type":"tea"})", R"({"type":"hello","setup":1,"address":"","libraries":{}})",
        R"({"type":"hello","setup":"","address":"0g","libraries":{}})", R"({"type":"finished","steps":1})"}) {
    const auto decoded = decode_from_worker(text);
    ASSERT_FALSE(decoded.ok()) << text;
    EXPECT_EQ(decoded.error().code, ErrorCode::kInternal);
  }
  EXPECT_FALSE(decode_to_worker(R"({"type":"start"})").ok());
  EXPECT_FALSE(decode_to_worker(R"({"type":"verdict","checkpoint":"g1-p1-00000001","kind":"maybe"})").ok());
  EXPECT_FALSE(decode_to_worker(R"({"type":"verdict","checkpoint":"../g1","kind":"committed"})").ok());
  EXPECT_FALSE(decode_from_worker(R"({"type":"hello","setup":"","address":"","libraries":[]})").ok());
  EXPECT_FALSE(decode_to_worker(R"({"type":"start","addresses":["abc"]})").ok());
}

TEST(ControlSocket, KeepsTheBoundsOfMessages) {
  const auto ends = ControlSocket::make_pair();
  ASSERT_TRUE(ends.ok());
  const std::string large(100'000, 'x');
  EXPECT_FALSE(ends->second.readable(0));
  EXPECT_TRUE(ends->first.send("one"));
  EXPECT_TRUE(ends->first.send(large));
  EXPECT_EQ(ends->second.receive(), "one");
  EXPECT_EQ(ends->second.receive(), large);
}

TEST(ControlSocket, NoticesThatTheOtherEndIsGone) {
  auto ends = ControlSocket::make_pair();
  ASSERT_TRUE(ends.ok());
  ends->first.send("last words");
  { const ControlSocket gone = std::move(ends->first); }
  EXPECT_EQ(ends->second.receive(), "last words");
  EXPECT_TRUE(ends->second.readable(-1));
  EXPECT_EQ(ends->second.receive(), std::nullopt);
  EXPECT_FALSE(ends->second.send("anybody?"));
}

}  // namespace
}  // namespace everstep::launcher
