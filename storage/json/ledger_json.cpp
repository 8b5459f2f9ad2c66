#include "storage/json/ledger_json.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"
#include "storage/bounds.h"
#include "storage/json/document_reader.h"
#include "storage/json/document_values.h"

namespace everstep::storage {
namespace {

constexpr std::size_t kMostEntries = 1'000'000;

Json entry_json(const LedgerEntry& entry) {
  Json json = Json::object();
  json.set("window", entry.window);
  json.set("first", entry.first);
  json.set("end", entry.end);
  json.set("generation", entry.generation.value);
  json.set("plan", entry.plan);
  json.set("flushed", entry.flushed);
  json.set("skipped", entry.skipped);
  json.set("losses", to_json(entry.losses));
  if (!entry.left_out.empty()) {
    Json left_out = Json::array();
    for (const int minibatch : entry.left_out) left_out.append(minibatch);
    json.set("left_out", std::move(left_out));
  }
  if (entry.norm_limit != 0) json.set("norm_limit", to_json(entry.norm_limit));
  if (entry.provisional) json.set("provisional", true);
  return json;
}

LedgerEntry read_entry(DocumentReader& reader) {
  return {.window = reader.integer("window", 0, kMostVersions),
          .first = reader.small_integer("first", 0, kLargestWindow),
          .end = reader.small_integer("end", 0, kLargestWindow),
          .generation = {reader.integer("generation", 0, kMostGenerations)},
          .plan = reader.text("plan", kLongestPlan),
          .flushed = reader.boolean("flushed"),
          .skipped = reader.boolean("skipped"),
          .losses = reader.doubles("losses", kLargestWindow),
          .left_out = reader.has("left_out") ? reader.small_integers("left_out", kLargestWindow) : std::vector<int>{},
          .norm_limit = reader.has("norm_limit") ? reader.double_or_null("norm_limit").value_or(0) : 0,
          .provisional = reader.has("provisional") && reader.boolean("provisional")};
}

}  // namespace

bool needs_second_format(const std::vector<LedgerEntry>& entries) {
  return std::ranges::any_of(entries,
                             [](const LedgerEntry& entry) { return !entry.left_out.empty() || entry.norm_limit != 0; });
}

std::vector<LedgerEntry> read_entries(DocumentReader& reader) {
  std::vector<LedgerEntry> entries;
  for (DocumentReader& entry : reader.objects("entries", kMostEntries,
                                              {"window", "first", "end", "generation", "plan", "flushed", "skipped",
                                               "losses", "left_out", "norm_limit", "provisional"})) {
    entries.push_back(read_entry(entry));
    if (reader.failed()) return {};
  }
  return entries;
}

Json entries_json(const std::vector<LedgerEntry>& entries) {
  Json json = Json::array();
  for (const LedgerEntry& entry : entries) json.append(entry_json(entry));
  return json;
}

void add_members(const LedgerSegment& segment, Json& document) {
  document.set("lineage", hex_text(segment.lineage));
  document.set("before", to_json(segment.before));
  document.set("begin", segment.begin.value);
  document.set("end", segment.end.value);
  document.set("entries", entries_json(segment.entries));
}

LedgerSegment read_ledger_segment(const JsonReader& document, std::optional<Error>& complaint) {
  DocumentReader reader(document, complaint, {"document", "format", "lineage", "before", "begin", "end", "entries"});
  return {.lineage = reader.parsed("lineage", parse_hex, "16 lower-case hexadecimal digits"),
          .before = reader.digest_or_null("before"),
          .begin = {reader.integer("begin", 0, kLastPosition)},
          .end = {reader.integer("end", 0, kLastPosition)},
          .entries = read_entries(reader)};
}

}  // namespace everstep::storage
