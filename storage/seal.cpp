#include <optional>

#include "storage/documents.h"

namespace everstep::storage {
namespace {

constexpr std::string_view kHashLabel = "sha256 ";
constexpr std::string_view kMacLabel = "hmac-sha256 ";

std::string seal_line(std::string_view label, const Digest& digest) {
  return std::string(label).append(to_string(digest)).append("\n");
}

// Takes the last line off `text` if it is that label and a digest.
std::optional<Digest> take_line(std::string_view& text, std::string_view label) {
  const std::size_t length = seal_line(label, {}).size();
  if (text.size() < length) return std::nullopt;
  const std::string_view line = text.substr(text.size() - length);
  const std::string_view rest = text.substr(0, text.size() - length);
  if (!line.starts_with(label) || !line.ends_with('\n') || !rest.ends_with('\n')) return std::nullopt;
  const auto digest = parse_digest(line.substr(label.size(), line.size() - label.size() - 1));
  if (digest) text = rest;
  return digest;
}

Error damaged(std::string what) { return {ErrorCode::kDataLoss, std::move(what), ""}; }

}  // namespace

std::string Seal::seal(std::string text) const {
  EVERSTEP_CHECK(text.ends_with('\n'), "a document ends with a newline");
  std::string_view unsealed = text;
  EVERSTEP_CHECK(!take_line(unsealed, kMacLabel), "a document's last line looks like a seal");
  if (!secret_.empty()) text += seal_line(kMacLabel, hashing_.hmac_sha256(secret_, text));
  text += seal_line(kHashLabel, sha256_of(hashing_, text));
  return text;
}

Result<std::string> Seal::open(std::string_view sealed) const {
  std::string_view text = sealed;
  const auto hash = take_line(text, kHashLabel);
  if (!hash) return damaged("the document does not end with its seal");
  if (!equal_digests(*hash, sha256_of(hashing_, text))) return damaged("the document differs from what was sealed");
  const auto mac = take_line(text, kMacLabel);
  if (secret_.empty()) return std::string(text);
  if (!mac) {
    return Error{ErrorCode::kDataLoss, "the document carries no MAC, and a secret was given",
                 "leave the secret away if the job never had one"};
  }
  if (!equal_digests(*mac, hashing_.hmac_sha256(secret_, text))) {
    return Error{ErrorCode::kDataLoss, "the document's MAC does not fit the secret",
                 "give the secret that the job was started with"};
  }
  return std::string(text);
}

}  // namespace everstep::storage
