#include "trainer/socket/closing_streams.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/tls/tls_ends.h"
#include "trainer/socket/plain_stream.h"
#include "trainer/socket/sockets.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

// Has always more to read, for a minute at least.
class EndlessStream final : public ByteStream {
 public:
  explicit EndlessStream(FileDescriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const override { return socket_.get(); }
  StreamResult negotiate() override { return {StreamResult::Kind::kMoved}; }
  short awaited() const override { return 0; }
  StreamResult read(std::span<const iovec>) override {
    if (std::chrono::steady_clock::now() > until_) return {StreamResult::Kind::kEnded};
    return {StreamResult::Kind::kMoved, 1};
  }
  StreamResult write(std::span<const iovec> from) override { return write_socket(socket_.get(), from); }
  bool has_unsent() const override { return false; }
  StreamResult flush() override { return {StreamResult::Kind::kMoved}; }
  bool has_unread() const override { return true; }
  void end_writing() override { ::shutdown(socket_.get(), SHUT_WR); }
  void notice_lost_host() override {}
  std::string binding() const override { return {}; }
  bool encrypts() const override { return true; }
  std::string_view name() const override { return "endless"; }

 private:
  FileDescriptor socket_;
  const std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + 60s;
};

TEST(Closing, APeerThatNeverStopsTalkingIsHungUpOnInTime) {
  SocketPair sockets = connected_sockets();
  ClosingStreams closing;
  const auto start = std::chrono::steady_clock::now();
  closing.take(std::make_unique<EndlessStream>(std::move(sockets.called)));
  const std::string piece(65536, 'p');
  const iovec from{const_cast<char*>(piece.data()), piece.size()};  // it is only read
  while (write_socket(sockets.caller.get(), {&from, 1}).kind != StreamResult::Kind::kBroken) {
  }
  const auto time = std::chrono::steady_clock::now() - start;
  EXPECT_GT(time, ClosingStreams::kTimeToClose - 100ms) << "a slow reader has time";
  EXPECT_LT(time, 10 * ClosingStreams::kTimeToClose);
}

// The last words arrive, though what the other side said was never read.
TEST(Closing, WhatWasWrittenArrivesAndTheConnectionEndsInOrder) {
  const auto context = key_context();
  StreamPair streams = tls_pair(*context, *context);
  ASSERT_TRUE(streams.negotiate().first.moved());
  write_all(*streams.caller, std::string(100'000, 'u'));
  write_all(*streams.called, "last words");
  ClosingStreams closing;
  closing.take(std::move(streams.called));
  EXPECT_EQ(read_text(*streams.caller, 100), "last words");
  char ignored = 0;
  const iovec into{&ignored, 1};
  EXPECT_EQ(streams.caller->read({&into, 1}).kind, StreamResult::Kind::kEnded);
  EXPECT_EQ(call_error(streams.caller->descriptor()), 0) << "it was not broken off";
}

}  // namespace
}  // namespace everstep::trainer
