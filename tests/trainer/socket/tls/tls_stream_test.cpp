#include "trainer/socket/tls/tls_stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/tls/tls_ends.h"

namespace everstep::trainer {
namespace {

using Kind = StreamResult::Kind;

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 2654435761U) >> 11);
  return text;
}

class TlsStreams : public testing::Test {
 protected:
  TlsStreams() {
    const auto [one, other] = streams_.negotiate();
    EXPECT_TRUE(one.moved()) << one.reason;
    EXPECT_TRUE(other.moved()) << other.reason;
  }

  StreamResult read_some(ByteStream& stream, std::size_t bytes = 1) {
    into_.resize(bytes);
    const iovec into{into_.data(), bytes};
    return stream.read({&into, 1});
  }

  ByteStream& caller() { return *streams_.caller; }
  ByteStream& called() { return *streams_.called; }

  std::unique_ptr<TlsContext> context_ = key_context();
  StreamPair streams_ = tls_pair(*context_, *context_);
  std::string into_;
};

TEST_F(TlsStreams, CarryBytesBothWays) {
  for (const std::size_t size : {1UL, 16384UL, 16385UL, 1UL << 20}) {
    const std::string text = pattern(size);
    std::thread writing([&] { write_all(caller(), text); });
    EXPECT_EQ(read_text(called(), size), text);
    writing.join();
    std::thread answering([&] { write_all(called(), text); });
    EXPECT_EQ(read_text(caller(), size), text);
    answering.join();
  }
}

// A header and a payload, as frames leave.
TEST_F(TlsStreams, GatherPartsOfAnySize) {
  const std::string text = pattern(200'000);
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{96}, std::size_t{16384}, text.size()}) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const std::size_t split = std::max(first, sent);
      const std::array<iovec, 2> parts{iovec{const_cast<char*>(text.data()) + sent, split - sent},
                                       iovec{const_cast<char*>(text.data()) + split, text.size() - split}};
      const StreamResult result = caller().write(parts);
      ASSERT_NE(result.kind, Kind::kBroken);
      EXPECT_EQ(read_text(called(), result.bytes), text.substr(sent, result.bytes));
      sent += result.bytes;
    }
  }
}

TEST_F(TlsStreams, BindBothEndsToOneNumberThatNoOtherConnectionHas) {
  EXPECT_EQ(caller().binding().size(), 32U);
  EXPECT_EQ(caller().binding(), called().binding());
  const StreamPair other = tls_pair(*context_, *context_);
  ASSERT_TRUE(other.negotiate().first.moved());
  EXPECT_NE(other.caller->binding(), caller().binding());
  EXPECT_TRUE(caller().encrypts());
  EXPECT_EQ(caller().name(), "tls");
}

TEST_F(TlsStreams, AnEndThatWasSaidIsToldFromALineThatWasCut) {
  write_all(caller(), "last words");
  caller().end_writing();
  EXPECT_EQ(read_text(called(), 100), "last words");
  EXPECT_EQ(read_some(called()).kind, Kind::kEnded);
  ::shutdown(called().descriptor(), SHUT_WR);
  pollfd polled{caller().descriptor(), POLLIN, 0};
  ::poll(&polled, 1, -1);
  const StreamResult cut = read_some(caller());
  EXPECT_EQ(cut.kind, Kind::kBroken);
  EXPECT_TRUE(cut.is_hang_up());
}

// The kernel always takes a part, and never the last byte.
TEST_F(TlsStreams, OnesThatAreNeverIdleKeepNothingThatHasLeft) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  const StreamPair line{context_->call(FileDescriptor(ends[0]), kTestPurpose),
                        context_->answer(FileDescriptor(ends[1]), kTestPurpose)};
  ASSERT_TRUE(line.negotiate().first.moved());
  const int much_less_than_is_gathered = 16 << 10;
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &much_less_than_is_gathered, sizeof much_less_than_is_gathered);
  const std::string piece = pattern(16 << 10);
  const iovec from{const_cast<char*>(piece.data()), piece.size()};
  const auto in_use = [] {
    const auto heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  const auto fill = [&] {
    while (line.caller->write({&from, 1}).moved()) continue;
  };
  std::string taken(4 << 10, '\0');
  fill();
  const std::size_t before = in_use();
  for (int passed = 0; passed < 16 << 10; ++passed) {  // 64 MiB
    ASSERT_GT(::recv(ends[1], taken.data(), taken.size(), 0), 0);
    fill();
    ASSERT_TRUE(line.caller->has_unsent());
  }
  EXPECT_LT(in_use(), before + (1 << 20));
}

// What was read ahead makes no event, so the stream has to say so.
TEST_F(TlsStreams, KnowWhatTheyHaveReadAhead) {
  write_all(caller(), "first");
  write_all(caller(), "second");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(read_text(called(), 5), "first");
  pollfd polled{called().descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 0) << "the kernel has nothing left";
  EXPECT_TRUE(called().has_unread());
  EXPECT_EQ(read_text(called(), 6), "second");
  EXPECT_EQ(read_some(called()).kind, Kind::kBlocked);
  EXPECT_FALSE(called().has_unread());
}

// Else whoever asks would ask without end, and burn a processor.
TEST_F(TlsStreams, HalfARecordIsNothingToRead) {
  SocketPair line = connected_sockets();
  const auto writer = context_->call(std::move(line.caller), kTestPurpose);
  SocketPair other = connected_sockets();
  const auto reader = context_->answer(std::move(other.called), kTestPurpose);
  const auto pass = [](const FileDescriptor& from, const FileDescriptor& to, std::size_t cut) {
    std::string bytes(100'000, '\0');
    const ssize_t count = ::recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) say(to, std::string_view(bytes).substr(0, static_cast<std::size_t>(count) - cut));
    return count;
  };
  bool done = false;
  while (!done) {
    const bool one = writer->negotiate().moved();
    pass(line.called, other.caller, 0);
    done = reader->negotiate().moved() && one;
    pass(other.caller, line.called, 0);
  }
  write_all(*writer, std::string(1000, 'r'));
  while (pass(line.called, other.caller, 10) <= 0) continue;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(read_some(*reader).kind, Kind::kBlocked);
  EXPECT_FALSE(reader->has_unread());
}

std::atomic<int> signals_of_broken_pipes{0};

TEST_F(TlsStreams, ABrokenPipeRaisesNoSignal) {
  struct sigaction count {};
  struct sigaction before {};
  count.sa_handler = [](int) { ++signals_of_broken_pipes; };
  ASSERT_EQ(::sigaction(SIGPIPE, &count, &before), 0);
  streams_.called.reset();
  EXPECT_TRUE(comes_true([&] {
    const iovec from{const_cast<char*>("x"), 1};
    return caller().write({&from, 1}).kind == Kind::kBroken;
  }));
  caller().end_writing();
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(signals_of_broken_pipes, 0);
}

// Neither the kernel nor the stream takes without end what nobody reads.
TEST_F(TlsStreams, TakeABoundedNumberOfBytesThatNobodyReads) {
  const std::string piece = pattern(65536);
  std::size_t taken = 0;
  StreamResult result;
  do {
    const iovec from{const_cast<char*>(piece.data()), piece.size()};
    result = caller().write({&from, 1});
    taken += result.bytes;
    if (result.kind == Kind::kBlocked) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while ((result.moved() || caller().flush().moved()) && taken < (64U << 20));
  EXPECT_EQ(result.kind, Kind::kBlocked);
  EXPECT_GT(taken, 100'000U);
  EXPECT_LT(taken, 8U << 20);
}

// OpenSSL never does so by itself.
TEST(TlsKeys, AreReplacedWhileDataGoesOn) {
  for (const std::uint64_t rekey_after : {std::uint64_t{1}, std::uint64_t{100'000}}) {
    const auto client = BareTls::client();
    const auto server = BareTls::server();
    for (SSL_CTX* context : {client.get(), server.get()}) {
      BareTls::use_certificates(*context);
      SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
    }
    SocketPair sockets = connected_sockets();
    const auto ours =
        make_tls_stream(client.get(), std::move(sockets.caller), {TlsSide::kCaller, true, {}, rekey_after});
    BareTls theirs(*server, std::move(sockets.called), TlsSide::kCalled);
    ASSERT_TRUE(theirs.negotiate_with(*ours));
    const std::string text = pattern(1 << 20);
    std::thread writing([&] { write_all(*ours, text); });
    std::string heard;
    while (heard.size() < text.size()) {
      std::string part(16384, '\0');
      std::size_t count = 0;
      if (SSL_read_ex(&theirs.ssl(), part.data(), part.size(), &count) == 1) {
        heard += part.substr(0, count);
      } else {
        ASSERT_EQ(SSL_get_error(&theirs.ssl(), 0), SSL_ERROR_WANT_READ);
      }
    }
    writing.join();
    EXPECT_EQ(heard, text);
    EXPECT_GE(theirs.key_updates, rekey_after == 1 ? 60 : 5);
  }
}

TEST(TlsKeys, AreReplacedOnBothEndsOfAStream) {
  const auto client = BareTls::client();
  const auto server = BareTls::server();
  for (SSL_CTX* context : {client.get(), server.get()}) BareTls::use_certificates(*context);
  SocketPair sockets = connected_sockets();
  const StreamPair streams{
      make_tls_stream(client.get(), std::move(sockets.caller), {TlsSide::kCaller, true, {}, 20'000}),
      make_tls_stream(server.get(), std::move(sockets.called), {TlsSide::kCalled, true, {}, 20'000})};
  ASSERT_TRUE(streams.negotiate().first.moved());
  const std::string text = pattern(3 << 20);
  std::thread there([&] { write_all(*streams.caller, text); });
  EXPECT_EQ(read_text(*streams.called, text.size()), text);
  there.join();
  std::thread back([&] { write_all(*streams.called, text); });
  EXPECT_EQ(read_text(*streams.caller, text.size()), text);
  back.join();
}

}  // namespace
}  // namespace everstep::trainer
