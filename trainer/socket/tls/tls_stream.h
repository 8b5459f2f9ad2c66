#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <openssl/ssl.h>

#include "storage/hashing.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/file_descriptor.h"

namespace everstep::trainer {

enum class TlsSide : std::uint8_t { kCaller, kCalled };

// The key that both sides have to have, and the name that the caller says.
struct ExternalKey {
  std::string identity;
  storage::Digest key;
};

struct TlsStreamOptions {
  TlsSide side = TlsSide::kCaller;
  bool has_certificates = false;  // they take the key's place
  ExternalKey key{};
  std::uint64_t rekey_after = 0;  // bytes
};

std::unique_ptr<ByteStream> make_tls_stream(SSL_CTX* context, FileDescriptor socket, TlsStreamOptions options);

// The oldest error that OpenSSL tells in this thread, in words.
std::string last_tls_error();

}  // namespace everstep::trainer
