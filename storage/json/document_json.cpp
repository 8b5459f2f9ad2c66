#include "storage/json/document_json.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "storage/bounds.h"
#include "storage/json/document_reader.h"
#include "storage/json/document_values.h"
#include "storage/json/ledger_json.h"
#include "storage/json/manifest_json.h"
#include "storage/json/shard_json.h"

namespace everstep::storage {
namespace {

constexpr JsonLimits kLimits{.bytes = kLargestDocument, .depth = 8, .values = 4'000'000};

void add_members(const Head& head, Json& document) {
  document.set("sequence", head.sequence);
  document.set("job", head.job);
  document.set("lineage", hex_text(head.lineage));
  document.set("checkpoint", to_string(head.checkpoint));
  document.set("writer", to_string(head.writer));
  document.set("manifest", to_string(head.manifest));
  document.set("previous", to_json(head.previous));
  document.set("parent", to_json(head.parent));
}

Head read_head(const JsonReader& document, std::optional<Error>& complaint) {
  DocumentReader reader(
      document, complaint,
      {"document", "format", "sequence", "job", "lineage", "checkpoint", "writer", "manifest", "previous", "parent"});
  return {.sequence = reader.integer("sequence", 1, JsonReader::kMaxInteger),
          .job = reader.text("job", kLongestName),
          .lineage = reader.parsed("lineage", parse_hex, "16 lower-case hexadecimal digits"),
          .checkpoint = reader.parsed("checkpoint", parse_checkpoint_name, "the name of a checkpoint"),
          .writer = reader.parsed("writer", parse_writer_tag, "a writer's tag"),
          .manifest = reader.digest("manifest"),
          .previous = reader.digest_or_null("previous"),
          .parent = reader.digest_or_null("parent")};
}

// What earlier programs could not read, because a plan or an entry of the ledger has members that they do not know,
// says so.
constexpr int kSecondFormat = 2;
// The same of what provisional steps need.
constexpr int kThirdFormat = 3;

int newest_format(std::string_view kind) {
  return kind == "ledger" || kind == "shard" || kind == "manifest" ? kThirdFormat : kFormatVersion;
}

int format_of_entries(const std::vector<LedgerEntry>& entries) {
  if (std::ranges::any_of(entries, &LedgerEntry::provisional)) return kThirdFormat;
  return needs_second_format(entries) ? kSecondFormat : kFormatVersion;
}

int format_of(const auto& /*document*/) { return kFormatVersion; }
int format_of(const LedgerSegment& segment) { return format_of_entries(segment.entries); }
int format_of(const Manifest& manifest) {
  if (manifest.clip_scale != 1 || manifest.plan.provisional > 0) return kThirdFormat;
  return manifest.plan.pipelines > 0 ? kSecondFormat : kFormatVersion;
}
int format_of(const Shard& shard) {
  const bool is_third = shard.clip_scale != 1 || shard.began_provisional;
  return is_third ? kThirdFormat : format_of_entries(shard.history);
}

template <typename Document>
std::string encode_as(std::string_view kind, const Document& content) {
  Json document = Json::object();
  document.set("document", kind);
  document.set("format", format_of(content));
  add_members(content, document);
  return to_text(document) + "\n";
}

// A text that encode would not have written.
Error malformed(Error error) {
  error.code = ErrorCode::kDataLoss;
  return error;
}

// What comes before all other members, since they differ between formats.
Status check_kind(const JsonReader& document, std::string_view kind) {
  const auto found = document.text_at("document");
  if (!found) return malformed(found.error());
  if (*found != kind) return malformed(document.error("this is no document of the kind '" + std::string(kind) + "'"));
  const auto format = document.integer_at("format");
  if (!format) return malformed(format.error());
  const int newest = newest_format(kind);
  if (*format >= kFormatVersion && *format <= newest) return {};
  if (*format < kFormatVersion) return malformed(document.error("there is no format " + std::to_string(*format)));
  return invalid_argument("format " + std::to_string(*format) + ", this program reads " + std::to_string(newest),
                          "use the version of everstep that wrote it");
}

template <typename Document>
Result<Document> parse_as(std::string_view kind, std::string_view text,
                          Document (*read)(const JsonReader&, std::optional<Error>&)) {
  const auto json = parse_json(text, kLimits);
  if (!json) return malformed(json.error());
  const JsonReader document(*json);
  EVERSTEP_TRY(check_kind(document, kind));
  std::optional<Error> complaint;
  Document content = read(document, complaint);
  if (complaint) return malformed(*complaint);
  return content;
}

template <typename Document>
Result<Document> checked(Result<Document> parsed) {
  if (!parsed) return parsed;
  if (const Status checked = check(*parsed); !checked) return malformed(checked.error());
  return parsed;
}

class JsonDocuments final : public DocumentFormat {
 public:
  std::string encode(const Manifest& manifest) const override { return encode_as("manifest", manifest); }
  std::string encode(const Head& head) const override { return encode_as("head", head); }
  std::string encode(const LedgerSegment& segment) const override { return encode_as("ledger", segment); }
  std::string encode(const Shard& shard) const override { return encode_as("shard", shard); }

  Result<Manifest> parse_manifest(std::string_view text) const override {
    return checked(parse_as("manifest", text, read_manifest));
  }
  Result<Head> parse_head(std::string_view text) const override { return checked(parse_as("head", text, read_head)); }
  Result<LedgerSegment> parse_ledger_segment(std::string_view text) const override {
    return parse_as("ledger", text, read_ledger_segment);
  }
  Result<Shard> parse_shard(std::string_view text) const override {
    return checked(parse_as("shard", text, read_shard));
  }
};

}  // namespace

std::unique_ptr<DocumentFormat> make_json_documents() { return std::make_unique<JsonDocuments>(); }

}  // namespace everstep::storage
