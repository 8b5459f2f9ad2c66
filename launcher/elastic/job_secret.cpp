#include "launcher/elastic/job_secret.h"

#include <optional>
#include <utility>

#include "launcher/checkpoint/checkpoint_store.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::launcher {
namespace {

std::string as_key(const storage::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

// HKDF-SHA256 (RFC 5869) of one block: keys for different purposes say nothing about each other.
std::string derive_key(std::string_view secret, std::string_view purpose) {
  const auto hashing = storage::make_openssl_hashing();
  const std::string extracted = as_key(hashing->hmac_sha256("everstep job secret", secret));
  return as_key(hashing->hmac_sha256(extracted, std::string(purpose) + '\x01'));
}

}  // namespace

Result<JobSecret> JobSecret::read(const std::string& path) {
  if (path.empty()) return JobSecret();
  auto secret = read_secret_file(path);
  if (!secret) return secret.error();
  return of(std::move(secret).value());
}

JobSecret JobSecret::of(std::string secret) {
  JobSecret keys;
  if (secret.empty()) return keys;
  keys.join_key_ = derive_key(secret, "join");
  keys.data_key_ = derive_key(secret, "data plane");
  keys.secret_ = std::move(secret);
  return keys;
}

std::string JobSecret::sign(std::string_view text) const {
  if (!is_set()) return {};
  return to_string(storage::make_openssl_hashing()->hmac_sha256(join_key_, text));
}

bool JobSecret::is_authentic(std::string_view text, std::string_view mac) const {
  if (!is_set()) return true;
  const std::optional<storage::Digest> said = storage::parse_digest(mac);
  return said && equal_digests(*said, storage::make_openssl_hashing()->hmac_sha256(join_key_, text));
}

std::function<storage::Digest(std::string_view)> JobSecret::handshake_seal() const {
  const std::shared_ptr<const storage::Hashing> hashing = storage::make_openssl_hashing();
  if (!is_set()) return [hashing](std::string_view text) { return sha256_of(*hashing, text); };
  return [hashing, key = data_key_](std::string_view text) { return hashing->hmac_sha256(key, text); };
}

}  // namespace everstep::launcher
