#include "tests/trainer/socket/wires.h"

#include <fstream>
#include <utility>

#include "storage/openssl/certificates.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/temporary_directory.h"

namespace everstep::trainer {

HandshakeSeal seal_with(const std::string& secret) {
  return [secret](std::string_view text) { return storage::make_openssl_hashing()->hmac_sha256(secret, text); };
}

CertificateFiles::CertificateFiles() {
  const storage::PrivateCertificates made = storage::make_private_certificates();
  files = {directory_.file("authority.pem"), directory_.file("worker.pem"), directory_.file("worker.key")};
  std::ofstream(files.authority) << made.authority;
  std::ofstream(files.certificate) << made.server.certificate;
  std::ofstream(files.key) << made.server.key;
}

const TlsFiles& test_certificates() {
  static const CertificateFiles certificates;
  return certificates.files;
}

HandshakeSeal seal_of(Wire wire) { return wire == Wire::kUnix ? HandshakeSeal(unkeyed_seal) : seal_with(kTestSecret); }

SocketOptions options_of(Wire wire, LogHook log) {
  if (wire == Wire::kTls) return tls_options(kTestSecret, std::move(log));
  if (wire == Wire::kCertificates) return certificate_options(kTestSecret, std::move(log));
  SocketOptions options;
  options.log = std::move(log);
  return options;
}

SocketOptions unix_options(const std::string& secret, LogHook log) {
  SocketOptions options;
  options.seal = seal_with(secret);
  options.log = std::move(log);
  return options;
}

SocketOptions tls_options(const std::string& secret, LogHook log) {
  SocketOptions options = unix_options(secret, std::move(log));
  options.lineage = kTestLineage;
  options.tcp.emplace();
  return options;
}

SocketOptions certificate_options(const std::string& secret, LogHook log) {
  SocketOptions options = tls_options(secret, std::move(log));
  options.tcp->files = test_certificates();
  return options;
}

std::string wire_name(const testing::TestParamInfo<Wire>& wire) { return testing::PrintToString(wire.param); }

void PrintTo(Wire wire, std::ostream* out) {
  *out << (wire == Wire::kUnix ? "Unix" : wire == Wire::kTls ? "Tls" : "Certificates");
}

}  // namespace everstep::trainer
