#include "storage/json/shard_json.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "storage/bounds.h"
#include "storage/json/document_reader.h"
#include "storage/json/document_values.h"
#include "storage/json/ledger_json.h"
#include "storage/json/manifest_json.h"

namespace everstep::storage {
namespace {

// Two lists side by side: a worker knows the losses of some minibatches only.
void add_losses(const std::vector<StoredLoss>& losses, Json& document) {
  Json minibatches = Json::array();
  std::vector<double> values;
  for (const auto& [minibatch, loss] : losses) {
    minibatches.append(minibatch);
    values.push_back(loss);
  }
  document.set("minibatches", std::move(minibatches));
  document.set("losses", to_json(values));
}

std::vector<StoredLoss> read_losses(DocumentReader& reader) {
  const std::vector<int> minibatches = reader.small_integers("minibatches", kLargestWindow);
  const std::vector<double> values = reader.doubles("losses", kLargestWindow);
  if (minibatches.size() != values.size() && !reader.failed()) reader.complain("losses", "expected one per minibatch");
  if (reader.failed()) return {};
  std::vector<StoredLoss> losses;
  for (std::size_t i = 0; i < values.size(); ++i) losses.push_back({minibatches[i], values[i]});
  return losses;
}

}  // namespace

void add_members(const Shard& shard, Json& document) {
  document.set("job", shard.job);
  document.set("lineage", hex_text(shard.lineage));
  document.set("checkpoint", to_string(shard.name));
  document.set("version", shard.version.value);
  document.set("applied", shard.applied);
  if (shard.clip_scale != 1) document.set("clip_scale", to_json(shard.clip_scale));
  document.set("began_drained", shard.began_drained);
  if (shard.began_provisional) document.set("began_provisional", true);
  document.set("validation_loss", to_json(shard.validation_loss));
  add_losses(shard.window_losses, document);
  document.set("files", files_json(shard.files));
  document.set("entries", entries_json(shard.history));
}

Shard read_shard(const JsonReader& document, std::optional<Error>& complaint) {
  DocumentReader reader(
      document, complaint,
      {"document", "format", "job", "lineage", "checkpoint", "version", "applied", "clip_scale", "began_drained",
       "began_provisional", "validation_loss", "minibatches", "losses", "files", "entries"});
  return {.job = reader.text("job", kLongestName),
          .lineage = reader.parsed("lineage", parse_hex, "16 lower-case hexadecimal digits"),
          .name = reader.parsed("checkpoint", parse_checkpoint_name, "the name of a checkpoint"),
          .version = {reader.integer("version", 0, kMostVersions)},
          .applied = reader.integer("applied", 0, kMostVersions),
          .clip_scale = read_clip_scale(reader),
          .began_drained = reader.boolean("began_drained"),
          .began_provisional = reader.has("began_provisional") && reader.boolean("began_provisional"),
          .validation_loss = reader.double_or_null("validation_loss"),
          .files = read_files(reader),
          .window_losses = read_losses(reader),
          .history = read_entries(reader)};
}

}  // namespace everstep::storage
