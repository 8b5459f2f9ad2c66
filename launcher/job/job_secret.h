#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "elastic/record_seal.h"
#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "storage/hashing.h"

namespace everstep::launcher {

// What the file of --secret-file holds; empty if none was given, or after a failure.
std::string read_secret(const Config& config, Outcome& failure);

// What to type to make one, and to use it.
inline constexpr const char* kMakeSecret = "(umask 077 && openssl rand -hex 32 > secret), then --secret-file=secret";

// Whether the job whose spec has that text has a secret. Its spec is sealed as documents of checkpoints are.
bool has_secret(const std::string& spec);

// What only the workers of a job know, and the keys made of it: one for each use, so that a MAC made for one proves
// nothing elsewhere. Without a secret nothing is authentic and nothing is refused for it.
class JobSecret {
 public:
  JobSecret() = default;

  // An empty path: no secret. See read_secret_file for what is refused.
  static Result<JobSecret> read(const std::string& path);

  // `secret` may be empty: none.
  static JobSecret of(std::string secret);

  bool is_set() const { return !secret_.empty(); }

  // For the records of the job whose spec has that text. Without a secret nothing is checked.
  elastic::RecordSeal record_seal(const elastic::Keys& keys, const std::string& spec) const;

  // For SocketOptions::seal; empty without a secret.
  std::function<storage::Digest(std::string_view)> handshake_seal() const;

  // For storage::Seal: the secret itself, as checkpoints have always been sealed with; empty without one.
  const std::string& manifest_secret() const { return secret_; }

 private:
  std::string secret_;
  std::string record_key_;
  std::string data_key_;
};

}  // namespace everstep::launcher
