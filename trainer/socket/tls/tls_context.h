#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/handshake_message.h"

namespace everstep::trainer {

// Files in PEM: who signed the certificates of all workers, this worker's certificate, and its key. They replace the
// key that is made of the job's secret; they do not replace the secret.
struct TlsFiles {
  std::string authority;
  std::string certificate;
  std::string key;
};

// What a key is made for. One made for another purpose, job or called worker opens nothing: a call that is thrown back
// at its caller, or played at somebody else, fails.
struct TlsPurpose {
  std::uint64_t lineage = 0;
  std::string called;  // to_text of the called worker's TcpAddress
};

// Makes connections that only the workers of one job can have: TLS 1.3 with AES-128-GCM and fresh Diffie-Hellman keys
// each time. Both sides prove a key made of the job's secret, or a certificate of the authority in the files. No
// earlier session is taken up again and no data comes early. From any thread.
class TlsContext {
 public:
  // The seal must be keyed with the job's secret. kInvalidArgument names the file that cannot be used.
  static Result<std::unique_ptr<TlsContext>> make(HandshakeSeal seal, const std::optional<TlsFiles>& files);

  virtual ~TlsContext() = default;

  // Over a TCP socket that does not block; the caller's may still be connecting.
  virtual std::unique_ptr<ByteStream> call(FileDescriptor socket, const TlsPurpose& purpose) = 0;
  virtual std::unique_ptr<ByteStream> answer(FileDescriptor socket, const TlsPurpose& purpose) = 0;
};

// How StreamResult::reason begins if the other side does not have the key.
inline constexpr const char* kOtherTlsKey = "the keys differ";

// A key that has encrypted so many bytes is replaced.
inline constexpr std::uint64_t kTlsKeyBytes = std::uint64_t{64} << 30;

}  // namespace everstep::trainer
