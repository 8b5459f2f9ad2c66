#include "trainer/socket/plain_stream.h"

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/trainer/socket/stranger.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

using Kind = StreamResult::Kind;

class PlainStreams : public testing::Test {
 protected:
  PlainStreams() {
    UnixListener listener = UnixListener::listen(directory_.file("run"), "called").value();
    one = make_plain_stream(call_unix(listener.path()).value()).value();
    other = make_plain_stream(
                FileDescriptor(::accept4(listener.take_socket().get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)))
                .value();
  }

  static StreamResult read(ByteStream& stream, std::string& text) {
    std::array<char, 100> bytes{};
    const iovec into{bytes.data(), bytes.size()};
    const StreamResult came = stream.read({&into, 1});
    text.append(bytes.data(), came.bytes);
    return came;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<ByteStream> one;
  std::unique_ptr<ByteStream> other;
  std::string text_;
};

TEST_F(PlainStreams, CarryBytesAndTheirEnd) {
  EXPECT_TRUE(one->negotiate().moved());
  EXPECT_EQ(read(*other, text_).kind, Kind::kBlocked);
  write_all(*one, "words");
  one->end_writing();
  EXPECT_TRUE(read(*other, text_).moved());
  EXPECT_EQ(text_, "words");
  EXPECT_EQ(read(*other, text_).kind, Kind::kEnded);
  write_all(*other, "answer");
  text_.clear();
  EXPECT_TRUE(read(*one, text_).moved());
  EXPECT_EQ(text_, "answer");
  EXPECT_EQ(one->binding(), "");
  EXPECT_FALSE(one->encrypts());
  EXPECT_EQ(one->name(), "unix");
}

// Also what lies unread on the other side.
TEST_F(PlainStreams, WhatWasWrittenBeforeTheEndIsReadFirst) {
  write_all(*other, "nobody reads this");
  write_all(*one, "words");
  one.reset();
  EXPECT_TRUE(read(*other, text_).moved());
  EXPECT_EQ(text_, "words");
  EXPECT_TRUE(read(*other, text_).is_hang_up());
}

volatile std::sig_atomic_t broken_pipes = 0;

TEST_F(PlainStreams, ABrokenPipeRaisesNoSignal) {
  struct sigaction count {};
  struct sigaction before {};
  count.sa_handler = [](int) { broken_pipes = broken_pipes + 1; };
  ASSERT_EQ(::sigaction(SIGPIPE, &count, &before), 0);
  other.reset();
  const iovec from{const_cast<char*>("x"), 1};
  const StreamResult result = one->write({&from, 1});
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_TRUE(result.is_hang_up());
  EXPECT_EQ(broken_pipes, 0);
}

// A usual frame leaves with one call, on both sides alike, and not much more.
TEST_F(PlainStreams, TheKernelTakesABoundedNumberOfBytesThatNobodyReads) {
  std::vector<std::size_t> both;
  for (ByteStream* stream : {one.get(), other.get()}) {
    const std::string piece(65536, 'p');
    std::size_t taken = 0;
    StreamResult result{Kind::kMoved};
    while (result.moved() && taken < (64U << 20)) {
      const iovec from{const_cast<char*>(piece.data()), piece.size()};
      result = stream->write({&from, 1});
      taken += result.bytes;
    }
    EXPECT_EQ(result.kind, Kind::kBlocked);
    EXPECT_LT(taken, 4U << 20);
    both.push_back(taken);
  }
  EXPECT_EQ(both[0], both[1]);
}

// The kernel vouches for nobody there.
TEST(PlainStreamsOverTcp, AreRefused) {
  const TcpListener listener = listen_on_tcp({"127.0.0.1", 0, 0}).value();
  EXPECT_FALSE(make_plain_stream(call("127.0.0.1:" + std::to_string(listener.port))));
}

}  // namespace
}  // namespace everstep::trainer
