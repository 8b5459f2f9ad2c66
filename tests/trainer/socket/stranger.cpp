#include "tests/trainer/socket/stranger.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "trainer/socket/dialing.h"
#include "trainer/socket/ip_address.h"
#include "trainer/socket/peer_address.h"
#include "trainer/socket/plain_stream.h"
#include "trainer/socket/sockets.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

constexpr int kSoonMs = std::chrono::milliseconds(kSoon).count();

bool becomes(int descriptor, short event) {
  pollfd polled{descriptor, event, 0};
  return ::poll(&polled, 1, kSoonMs) > 0;
}

// Reads what there is and waits for more, until the other side is done, there is enough, or it takes too long.
template <typename Read>
std::string read_text(int descriptor, std::size_t most, Read read) {
  std::string all;
  std::array<char, 16384> bytes{};
  while (all.size() < most) {
    const StreamResult came = read(iovec{bytes.data(), std::min(bytes.size(), most - all.size())});
    if (came.kind == StreamResult::Kind::kBlocked && becomes(descriptor, POLLIN)) continue;
    if (!came.moved()) break;
    all.append(bytes.data(), came.bytes);
  }
  return all;
}

}  // namespace

FileDescriptor call(const std::string& text) {
  const PeerAddress address = parse_peer_address(text).value();
  Result<FileDescriptor> socket = address.tcp ? call_tcp(*address.tcp) : call_unix(address.local->path);
  EXPECT_TRUE(socket) << socket.error();
  EXPECT_TRUE(socket->is_open()) << "too many callers wait already";
  EXPECT_TRUE(becomes(socket->get(), POLLOUT));
  EXPECT_EQ(call_error(socket->get()), 0);
  return std::move(socket).value();
}

FileDescriptor call_from(const std::string& host, const std::string& text) {
  const auto at = [](const std::string& ip, std::uint16_t port) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr = std::get<in_addr>(parse_ip(ip).value());
    v4.sin_port = htons(port);
    return SocketAddress::of(v4);
  };
  const TcpAddress called = parse_peer_address(text)->tcp.value();
  const SocketAddress from = at(host, 0);
  const SocketAddress to = at(called.host, called.port);
  FileDescriptor socket = new_socket(AF_INET).value();
  EXPECT_EQ(::bind(socket.get(), from.get(), from.size), 0);
  EXPECT_TRUE(::connect(socket.get(), to.get(), to.size) == 0 || errno == EINPROGRESS);
  return socket;
}

void say(const FileDescriptor& socket, std::string_view bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string hear(const FileDescriptor& socket, std::size_t most) {
  return read_text(socket.get(), most, [&](iovec into) { return read_socket(socket.get(), {&into, 1}); });
}

bool hangs_up(const FileDescriptor& socket) {
  hear(socket);
  return !is_quiet(socket);
}

bool is_quiet(const FileDescriptor& socket) {
  pollfd polled{socket.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 0;
}

bool negotiate(ByteStream& stream) {
  if (!becomes(stream.descriptor(), POLLOUT)) return false;
  while (true) {
    const StreamResult result = stream.negotiate();
    if (result.kind != StreamResult::Kind::kBlocked) return result.moved();
    if (!becomes(stream.descriptor(), stream.awaited())) return false;
  }
}

void write_all(ByteStream& stream, std::string_view bytes) {
  while (!bytes.empty() || stream.has_unsent()) {
    const iovec from{const_cast<char*>(bytes.data()), bytes.size()};  // it is only read
    const StreamResult result = bytes.empty() ? stream.flush() : stream.write({&from, 1});
    if (result.kind == StreamResult::Kind::kBroken) return;
    if (result.kind == StreamResult::Kind::kBlocked && !becomes(stream.descriptor(), POLLOUT)) return;
    bytes.remove_prefix(std::min(bytes.size(), result.bytes));
  }
}

Stranger::Stranger(const std::string& address, Wire wire, const std::string& secret, std::uint64_t lineage)
    : Stranger(call(address), address, wire, secret, lineage) {}

Stranger::Stranger(FileDescriptor socket, const std::string& address, Wire wire, const std::string& secret,
                   std::uint64_t lineage) {
  if (wire == Wire::kUnix) {
    stream_ = make_plain_stream(std::move(socket)).value();
  } else {
    const std::optional<TlsFiles> none;
    tls_ = TlsContext::make(seal_with(secret), wire == Wire::kTls ? none : test_certificates()).value();
    stream_ = tls_->call(std::move(socket), {lineage, address});
  }
  is_connected_ = negotiate(*stream_);
}

std::string Stranger::hear(std::size_t most) {
  return read_text(stream_->descriptor(), most, [&](iovec into) { return stream_->read({&into, 1}); });
}

std::optional<Reply> Stranger::hear_reply() {
  const std::string head = hear(kReplyHeadBytes);
  const auto body = reply_body_bytes(std::as_bytes(std::span(head)));
  return body ? understood(head + hear(*body)) : std::nullopt;
}

bool Stranger::is_quiet() {
  std::array<char, 1> byte{};
  const iovec into{byte.data(), byte.size()};
  return stream_->read({&into, 1}).kind == StreamResult::Kind::kBlocked;
}

std::optional<Reply> understood(const std::string& reply) { return decode_reply(std::as_bytes(std::span(reply))); }

CallerHello hello_of_worker_1(std::int64_t generation, std::uint32_t nonce, const Purpose& purpose) {
  return {
      {kTestLineage, Generation{generation}, nonce}, {1, test_worker_id(1)}, {0, test_worker_id(0)}, purpose, {1, 2}};
}

std::string proof_text(const Proof& proof) {
  Reply reply;
  reply.kind = Reply::Kind::kProof;
  reply.proof = proof;
  return encode_reply(reply);
}

std::optional<Reply> introduce(Stranger& stranger, const HandshakeSeal& seal, const CallerHello& hello,
                               const HandshakeNonce& ticket) {
  stranger.say(encode_hello(hello));
  const std::optional<Reply> reply = stranger.hear_reply();
  if (!reply || reply->kind != Reply::Kind::kProof) return reply;
  const Transcript transcript{hello, ticket, stranger.stream().binding()};
  stranger.say(proof_text(make_proof(seal, transcript, Side::kCaller, reply->proof.fresh, {})));
  return stranger.hear_reply();
}

LogHook LogLines::hook() {
  return [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  };
}

bool LogLines::comes(const std::string& text) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kSoon, [&] {
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  });
}

std::vector<std::string> LogLines::lines() {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::ptrdiff_t LogLines::count(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return std::count_if(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace everstep::trainer
