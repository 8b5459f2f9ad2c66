#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "storage/hashing.h"
#include "storage/head.h"
#include "storage/ledger.h"
#include "storage/manifest.h"
#include "storage/shard.h"

namespace everstep::storage {

// The text form of the small documents of a checkpoint (JSON, in storage/json). Parsing refuses whatever encode would
// not have written (kDataLoss): other members, types, ranges; texts above the limits before they cost memory. A newer
// format is kInvalidArgument, by its number, since the text is whole and another program reads it. A parsed document
// has passed its check(), but for a ledger segment, whose check() needs the manifest's window.
class DocumentFormat {
 public:
  virtual ~DocumentFormat() = default;

  virtual std::string encode(const Manifest& manifest) const = 0;
  virtual std::string encode(const Head& head) const = 0;
  virtual std::string encode(const LedgerSegment& segment) const = 0;
  virtual std::string encode(const Shard& shard) const = 0;

  virtual Result<Manifest> parse_manifest(std::string_view text) const = 0;
  virtual Result<Head> parse_head(std::string_view text) const = 0;
  virtual Result<LedgerSegment> parse_ledger_segment(std::string_view text) const = 0;
  virtual Result<Shard> parse_shard(std::string_view text) const = 0;
};

inline constexpr std::size_t kLargestDocument = std::size_t{64} << 20;

// A sealed document is its text (which ends with a newline) and lines that tell whether a bit of it has changed:
//   hmac-sha256 <64 digits>    with a secret, over the text: nobody without it can have written the document
//   sha256 <64 digits>         always, over all that stands before it
// Files hold sealed documents.
class Seal {
 public:
  // `secret` may be empty: tools without it verify hashes only, and say so (checks_authenticity).
  Seal(const Hashing& hashing, std::string secret) : hashing_(hashing), secret_(std::move(secret)) {}

  bool checks_authenticity() const { return !secret_.empty(); }

  std::string seal(std::string text) const;

  // The text without its seal. kDataLoss if the seal does not fit, or, with a secret, if there is no MAC. Without a
  // secret a MAC is not looked at.
  Result<std::string> open(std::string_view sealed) const;

 private:
  const Hashing& hashing_;
  std::string secret_;
};

}  // namespace everstep::storage
