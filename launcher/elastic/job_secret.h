#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/hashing.h"

namespace everstep::launcher {

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

  // The MAC of a member record's signed text, 64 digits; empty without a secret.
  std::string sign(std::string_view text) const;

  // Whether `mac` is sign(text). Without a secret everything is.
  bool is_authentic(std::string_view text, std::string_view mac) const;

  // For UcxOptions::seal. Without a secret it is a plain SHA-256.
  std::function<storage::Digest(std::string_view)> handshake_seal() const;

  // For storage::Seal: the secret itself, as checkpoints have always been sealed with; empty without one.
  const std::string& manifest_secret() const { return secret_; }

 private:
  std::string secret_;
  std::string join_key_;
  std::string data_key_;
};

}  // namespace everstep::launcher
