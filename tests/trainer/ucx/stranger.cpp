#include "tests/trainer/ucx/stranger.h"

#include <algorithm>
#include <chrono>
#include <span>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "storage/openssl/openssl_hashing.h"
#include "tests/trainer/ucx/loopback_workers.h"

namespace everstep::trainer {

FileDescriptor call(const std::string& text) {
  const LifelineAddress address = parse_lifeline_address(text).value();
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return socket;
}

void say(const FileDescriptor& socket, std::string_view bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string hear(const FileDescriptor& socket, std::size_t most) {
  std::string heard(most, '\0');
  const ssize_t count = ::recv(socket.get(), heard.data(), heard.size(), MSG_WAITALL);
  heard.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return heard;
}

std::string hear_reply(const FileDescriptor& socket) {
  const std::string head = hear(socket, kReplyHeadBytes);
  const auto body = reply_body_bytes(std::as_bytes(std::span(head)));
  return body.value_or(0) == 0 ? head : head + hear(socket, *body);
}

std::optional<Reply> understood(const std::string& reply) { return decode_reply(std::as_bytes(std::span(reply))); }

bool is_quiet(const FileDescriptor& socket) {
  pollfd polled{socket.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 0;
}

HandshakeSeal seal_with(const std::string& key) {
  return [key](std::string_view text) { return storage::make_openssl_hashing()->hmac_sha256(key, text); };
}

CallerHello hello_of_worker_1(std::int64_t generation, std::uint32_t nonce) {
  return {{kTestLineage, Generation{generation}, nonce}, {1, test_worker_id(1)}, {0, test_worker_id(0)}, {1, 2}};
}

std::string proof_text(const Proof& proof) {
  Reply reply;
  reply.kind = Reply::Kind::kProof;
  reply.proof = proof;
  return encode_reply(reply);
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
  return changed_.wait_for(lock, std::chrono::seconds(10), [&] {
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  });
}

std::vector<std::string> LogLines::lines() {
  const std::lock_guard lock(mutex_);
  return lines_;
}

}  // namespace everstep::trainer
