#pragma once

#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/loopback_workers.h"
#include "trainer/socket/socket_connector.h"

// The ways that two workers reach each other, for tests that must hold on each.
namespace everstep::trainer {

enum class Wire { kUnix, kTls, kCertificates };
inline constexpr Wire kAllWires[] = {Wire::kUnix, Wire::kTls, Wire::kCertificates};

inline const char* const kTestSecret = "one";

// An HMAC with this secret.
HandshakeSeal seal_with(const std::string& secret);

// A new authority that nobody else knows, and a worker's certificate of it.
class CertificateFiles {
 public:
  CertificateFiles();

  TlsFiles files;

 private:
  TemporaryDirectory directory_;
};

// Those that all workers of this process have.
const TlsFiles& test_certificates();

// What LoopbackWorkers takes. Over AF_UNIX there is no secret.
SocketOptions options_of(Wire wire, LogHook log = {});
HandshakeSeal seal_of(Wire wire);

SocketOptions unix_options(const std::string& secret, LogHook log = {});
SocketOptions tls_options(const std::string& secret = kTestSecret, LogHook log = {});
SocketOptions certificate_options(const std::string& secret = kTestSecret, LogHook log = {});

class OverEachWire : public testing::TestWithParam<Wire> {};

std::string wire_name(const testing::TestParamInfo<Wire>& wire);
void PrintTo(Wire wire, std::ostream* out);

}  // namespace everstep::trainer
