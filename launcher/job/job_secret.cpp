#include "launcher/job/job_secret.h"

#include <memory>
#include <utility>

#include "launcher/job/checkpoint_store.h"
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

std::string read_secret(const Config& config, Outcome& failure) {
  if (failure || !config.is_set("secret-file")) return {};
  auto secret = read_secret_file(*config.setting("secret-file").text);
  if (secret) return std::move(secret).value();
  failure = config.blame("secret-file", secret.error());
  return {};
}

bool has_secret(const std::string& spec) { return spec.find("\nhmac-sha256 ") != std::string::npos; }

Result<JobSecret> JobSecret::read(const std::string& path) {
  if (path.empty()) return JobSecret();
  auto secret = read_secret_file(path);
  if (!secret) return secret.error();
  return of(std::move(secret).value());
}

JobSecret JobSecret::of(std::string secret) {
  JobSecret keys;
  if (secret.empty()) return keys;
  keys.record_key_ = derive_key(secret, "records");
  keys.data_key_ = derive_key(secret, "data plane");
  keys.secret_ = std::move(secret);
  return keys;
}

elastic::RecordSeal JobSecret::record_seal(const elastic::Keys& keys, const std::string& spec) const {
  if (!has_secret(spec)) return {};
  if (!is_set()) return elastic::RecordSeal::unchecked(keys);
  const std::shared_ptr<const storage::Hashing> hashing = storage::make_openssl_hashing();
  // The spec has the lineage, and a number that no other job has.
  return {keys, [hashing, key = as_key(hashing->hmac_sha256(record_key_, spec))](std::string_view text) {
            return to_string(hashing->hmac_sha256(key, text));
          }};
}

std::function<storage::Digest(std::string_view)> JobSecret::handshake_seal() const {
  if (!is_set()) return {};
  const std::shared_ptr<const storage::Hashing> hashing = storage::make_openssl_hashing();
  return [hashing, key = data_key_](std::string_view text) { return hashing->hmac_sha256(key, text); };
}

}  // namespace everstep::launcher
