#include "tests/trainer/socket/tls/tls_ends.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/text.h"

namespace everstep::trainer {

using Kind = StreamResult::Kind;

SocketPair connected_sockets() {
  const TcpListener listener = listen_on_tcp({"127.0.0.1", 0, 0}).value();
  FileDescriptor caller = call("127.0.0.1:" + std::to_string(listener.port));
  pollfd polled{listener.socket.get(), POLLIN, 0};
  ::poll(&polled, 1, -1);
  FileDescriptor called(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  EVERSTEP_CHECK(called.is_open(), "accept failed");
  return {std::move(caller), std::move(called)};
}

std::pair<StreamResult, StreamResult> StreamPair::negotiate() const {
  StreamResult one;
  StreamResult other;
  const auto is_under_way = [](const StreamResult& result) { return result.kind == Kind::kBlocked; };
  const auto is_useless = [](const StreamResult& result) { return result.kind != Kind::kBlocked && !result.moved(); };
  while (is_under_way(one) || is_under_way(other)) {
    if (is_under_way(one)) one = caller->negotiate();
    if (is_under_way(other)) other = called->negotiate();
    if (is_useless(one) && is_under_way(other)) caller->end_writing();
    if (is_useless(other) && is_under_way(one)) called->end_writing();
  }
  return {one, other};
}

std::unique_ptr<TlsContext> key_context(const std::string& secret) {
  return TlsContext::make(seal_with(secret), {}).value();
}

std::unique_ptr<TlsContext> certificate_context(const TlsFiles& files) {
  return TlsContext::make(seal_with(kTestSecret), files).value();
}

StreamPair tls_pair(TlsContext& caller, TlsContext& called) {
  SocketPair sockets = connected_sockets();
  return {caller.call(std::move(sockets.caller), kTestPurpose), called.answer(std::move(sockets.called), kTestPurpose)};
}

std::string read_text(ByteStream& stream, std::size_t bytes) {
  std::string text;
  std::array<char, 16384> part{};
  while (text.size() < bytes) {
    const iovec into{part.data(), std::min(part.size(), bytes - text.size())};
    const StreamResult came = stream.read({&into, 1});
    pollfd polled{stream.descriptor(), POLLIN, 0};
    if (came.kind == Kind::kBlocked && ::poll(&polled, 1, std::chrono::milliseconds(kSoon).count()) > 0) continue;
    if (!came.moved()) break;
    text.append(part.data(), came.bytes);
  }
  return text;
}

namespace {

// What the job's workers make of their secret: see tls_context.cpp.
const std::string& identity() {
  static const std::string text = "everstep-wire-1 " + hex_text(kTestLineage) + " " + kTestPurpose.called;
  return text;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** name, std::size_t* size, SSL_SESSION** session) {
  const storage::Digest key = seal_with(kTestSecret)("tls key " + identity());
  const std::array<unsigned char, 2> suite{0x13, 0x01};
  *session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(*session, reinterpret_cast<const unsigned char*>(key.bytes.data()), key.bytes.size());
  SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, suite.data()));
  SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
  SSL_SESSION_set_max_early_data(*session, 1000);
  *name = reinterpret_cast<const unsigned char*>(identity().data());
  *size = identity().size();
  return 1;
}

}  // namespace

BareTls::Context BareTls::client() { return {SSL_CTX_new(TLS_client_method()), SSL_CTX_free}; }
BareTls::Context BareTls::server() { return {SSL_CTX_new(TLS_server_method()), SSL_CTX_free}; }

void BareTls::use_certificates(SSL_CTX& context) {
  const TlsFiles& files = test_certificates();
  EVERSTEP_CHECK(SSL_CTX_load_verify_locations(&context, files.authority.c_str(), nullptr) == 1 &&
                     SSL_CTX_use_certificate_chain_file(&context, files.certificate.c_str()) == 1 &&
                     SSL_CTX_use_PrivateKey_file(&context, files.key.c_str(), SSL_FILETYPE_PEM) == 1,
                 "OpenSSL does not take the certificates");
}

void BareTls::use_key(SSL_CTX& context) { SSL_CTX_set_psk_use_session_callback(&context, offer_key); }

BareTls::BareTls(SSL_CTX& context, FileDescriptor socket, TlsSide side)
    : socket_(std::move(socket)), ssl_(SSL_new(&context), SSL_free) {
  SSL_set_fd(ssl_.get(), socket_.get());
  SSL_set_msg_callback(ssl_.get(), count);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  side == TlsSide::kCaller ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
}

void BareTls::count(int is_written, int, int type, const void* bytes, std::size_t size, SSL*, void* self) {
  if (type != SSL3_RT_HANDSHAKE || size == 0) return;
  const unsigned char message = *static_cast<const unsigned char*>(bytes);
  if (message == SSL3_MT_NEWSESSION_TICKET && is_written == 0) ++static_cast<BareTls*>(self)->tickets;
  if (message == SSL3_MT_KEY_UPDATE) ++static_cast<BareTls*>(self)->key_updates;
}

bool BareTls::negotiate_with(ByteStream& ours) {
  StreamResult result;
  bool is_done = false;
  while (result.kind == Kind::kBlocked || !is_done) {
    ERR_clear_error();
    const int done = is_done ? 1 : SSL_do_handshake(ssl_.get());
    const int error = SSL_get_error(ssl_.get(), done);
    is_done = done == 1;
    if (result.kind == Kind::kBlocked) result = ours.negotiate();
    why_ours_refused = result.reason;
    if (!is_done && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    if (result.kind != Kind::kBlocked && !result.moved()) return false;
  }
  return true;
}

}  // namespace everstep::trainer
