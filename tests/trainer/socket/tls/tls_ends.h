#pragma once

#include <memory>
#include <string>
#include <utility>

#include <openssl/ssl.h>

#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/tls/tls_context.h"
#include "trainer/socket/tls/tls_stream.h"

// Both ends of a TCP connection, and OpenSSL without anything of ours on one of them.
namespace everstep::trainer {

struct SocketPair {
  FileDescriptor caller;
  FileDescriptor called;
};

// As workers make them: what the kernel takes is bounded.
SocketPair connected_sockets();

struct StreamPair {
  std::unique_ptr<ByteStream> caller;
  std::unique_ptr<ByteStream> called;

  // Both at once; what came of it on each side.
  std::pair<StreamResult, StreamResult> negotiate() const;
};

inline const TlsPurpose kTestPurpose{kTestLineage, "127.0.0.1:4711"};

std::unique_ptr<TlsContext> key_context(const std::string& secret = kTestSecret);
std::unique_ptr<TlsContext> certificate_context(const TlsFiles& files = test_certificates());

StreamPair tls_pair(TlsContext& caller, TlsContext& called);

// Reads until so many bytes came or nothing more does.
std::string read_text(ByteStream& stream, std::size_t bytes);

// Whatever OpenSSL can be told to do, in lockstep with a stream of ours.
class BareTls {
 public:
  using Context = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;
  static Context client();
  static Context server();
  static void use_certificates(SSL_CTX& context);
  // Offers the key that a worker of the test's job has.
  static void use_key(SSL_CTX& context);

  BareTls(SSL_CTX& context, FileDescriptor socket, TlsSide side);

  // Until both are done or one cannot.
  bool negotiate_with(ByteStream& ours);
  std::string why_ours_refused;

  SSL& ssl() { return *ssl_; }

  int tickets = 0;      // of sessions, that came
  int key_updates = 0;  // that came or went

 private:
  static void count(int is_written, int version, int type, const void* bytes, std::size_t size, SSL* ssl, void* self);

  FileDescriptor socket_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

}  // namespace everstep::trainer
