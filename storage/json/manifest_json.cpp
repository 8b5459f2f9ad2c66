#include "storage/json/manifest_json.h"

#include <limits>

#include "base/text.h"
#include "storage/bounds.h"
#include "storage/json/document_reader.h"
#include "storage/json/document_values.h"

namespace everstep::storage {
namespace {

constexpr int kMost = std::numeric_limits<int>::max();
constexpr std::size_t kLongestShape = 200;

// "float32 50257x768"; a scalar has its type only.
std::string tensor_text(const TensorSpec& tensor) {
  std::string text(to_string(tensor.type));
  char before = ' ';
  for (const std::int64_t size : tensor.shape) {
    text.append(1, before).append(std::to_string(size));
    before = 'x';
  }
  return text;
}

std::optional<TensorSpec> parse_tensor(const std::string& name, std::string_view text) {
  const std::string_view type_text = text.substr(0, text.find(' '));
  const auto type = parse_element_type(type_text);
  if (!type) return std::nullopt;
  TensorSpec tensor{.name = name, .type = *type, .shape = {}};
  for (std::string_view rest = text.substr(type_text.size()); !rest.empty();) {
    const std::string_view digits = rest.substr(1, rest.find('x', 1) - 1);
    const auto size = parse_number<std::int64_t>(digits);
    if (!size) return std::nullopt;
    tensor.shape.push_back(*size);
    rest.remove_prefix(1 + digits.size());
  }
  // One tensor has one text.
  if (tensor_text(tensor) != text) return std::nullopt;
  return tensor;
}

Json plan_json(const StoredPlan& plan) {
  Json json = Json::object();
  json.set("schedule", plan.schedule);
  json.set("depth", plan.depth);
  json.set("chunks_per_device", plan.chunks_per_device);
  json.set("width", plan.width);
  json.set("window", plan.window);
  json.set("preload", plan.preload);
  if (plan.pipelines > 0) {
    json.set("pipelines", plan.pipelines);
    json.set("lag", plan.lag);
  }
  if (plan.provisional > 0) json.set("provisional", plan.provisional);
  json.set("cuts", Json::Array(plan.cuts.begin(), plan.cuts.end()));
  return json;
}

StoredPlan read_plan(DocumentReader reader) {
  const bool has_choice = reader.has("pipelines") || reader.has("lag");
  return {.schedule = reader.text("schedule", kLongestName),
          .depth = reader.small_integer("depth", 1, kMost),
          .chunks_per_device = reader.small_integer("chunks_per_device", 1, kMost),
          .width = reader.small_integer("width", 1, kMost),
          .window = reader.small_integer("window", 1, kLargestWindow),
          .preload = reader.small_integer("preload", 0, kMost),
          .cuts = reader.small_integers("cuts", kMostBlocks + 1),
          .pipelines = has_choice ? reader.small_integer("pipelines", 1, kMost) : 0,
          .lag = has_choice ? reader.small_integer("lag", 0, kMost) : 0,
          .provisional = reader.has("provisional") ? reader.small_integer("provisional", 1, kMost) : 0};
}

Json losses_json(const std::vector<StoredLoss>& losses) {
  Json json = Json::array();
  for (const StoredLoss& loss : losses) json.append(to_json(loss.loss));
  return json;
}

std::vector<StoredLoss> read_losses(DocumentReader& reader, std::string_view name) {
  std::vector<StoredLoss> losses;
  for (const double loss : reader.doubles(name, kLargestWindow)) {
    losses.push_back({.minibatch = static_cast<int>(losses.size()), .loss = loss});
  }
  return losses;
}

Json file_json(const FileRecord& file) {
  Settings tensors;
  for (const TensorSpec& tensor : file.tensors) tensors.emplace_back(tensor.name, tensor_text(tensor));
  Json json = Json::object();
  json.set("block", file.block);
  json.set("kind", to_string(file.kind));
  json.set("version", file.version.value);
  json.set("written_by", to_string(file.written_by));
  json.set("writer", to_string(file.writer));
  json.set("size", file.size);
  json.set("sha256", to_string(file.sha256));
  json.set("tensors", to_json(tensors));
  return json;
}

std::vector<TensorSpec> read_tensors(DocumentReader& reader) {
  std::vector<TensorSpec> tensors;
  for (const auto& [name, text] : reader.texts("tensors", kMostTensorsPerFile, kLongestShape)) {
    const auto tensor = parse_tensor(name, text);
    if (!tensor) {
      reader.complain("tensors", "member " + std::to_string(tensors.size()) + ": expected a type and a shape");
      return {};
    }
    tensors.push_back(*tensor);
  }
  return tensors;
}

FileRecord read_file(DocumentReader& reader) {
  return {.block = reader.small_integer("block", 0, kMostBlocks),
          .kind = reader.parsed("kind", parse_state_kind, "weights, previous, optimizer, gradients or provisional"),
          .version = {reader.integer("version", 0, kMostVersions)},
          .written_by = reader.parsed("written_by", parse_checkpoint_name, "the name of a checkpoint"),
          .writer = reader.parsed("writer", parse_writer_tag, "a writer's tag"),
          .size = static_cast<std::uint64_t>(reader.integer("size", 0, kLargestFile)),
          .sha256 = reader.digest("sha256"),
          .tensors = read_tensors(reader)};
}

}  // namespace

double read_clip_scale(DocumentReader& reader) {
  return reader.has("clip_scale") ? reader.double_or_null("clip_scale").value_or(0) : 1;
}

std::vector<FileRecord> read_files(DocumentReader& reader) {
  std::vector<FileRecord> files;
  for (DocumentReader& file :
       reader.objects("files", std::size_t{kKindsOfState} * kMostBlocks,
                      {"block", "kind", "version", "written_by", "writer", "size", "sha256", "tensors"})) {
    if (reader.failed()) return {};
    files.push_back(read_file(file));
  }
  return files;
}

Json files_json(const std::vector<FileRecord>& files) {
  Json json = Json::array();
  for (const FileRecord& file : files) json.append(file_json(file));
  return json;
}

void add_members(const Manifest& manifest, Json& document) {
  document.set("job", manifest.job);
  document.set("lineage", hex_text(manifest.lineage));
  document.set("checkpoint", to_string(manifest.name));
  document.set("version", manifest.version.value);
  document.set("applied", manifest.applied);
  if (manifest.clip_scale != 1) document.set("clip_scale", to_json(manifest.clip_scale));
  document.set("plan", plan_json(manifest.plan));
  document.set("blocks", manifest.blocks);
  document.set("accumulation", manifest.accumulation);
  document.set("window_losses", losses_json(manifest.window_losses));
  document.set("flushed", windows_to_json(manifest.flushed));
  document.set("skipped", windows_to_json(manifest.skipped));
  document.set("loss", to_json(manifest.loss));
  document.set("validation_loss", to_json(manifest.validation_loss));
  document.set("parent", to_json(manifest.parent));
  document.set("ledger", to_json(manifest.ledger));
  document.set("ledger_writer", to_string(manifest.ledger_writer));
  document.set("configuration", to_json(manifest.configuration));
  document.set("provenance", to_json(manifest.provenance));
  document.set("files", files_json(manifest.files));
}

Manifest read_manifest(const JsonReader& document, std::optional<Error>& complaint) {
  DocumentReader reader(
      document, complaint,
      {"document", "format", "job",           "lineage",       "checkpoint", "version", "applied", "clip_scale",
       "plan",     "blocks", "accumulation",  "window_losses", "flushed",    "skipped", "loss",    "validation_loss",
       "parent",   "ledger", "ledger_writer", "configuration", "provenance", "files"});
  const DocumentReader::Members plan_members = {"schedule",  "depth", "chunks_per_device", "width", "window", "preload",
                                                "pipelines", "lag",   "provisional",       "cuts"};
  return {.job = reader.text("job", kLongestName),
          .lineage = reader.parsed("lineage", parse_hex, "16 lower-case hexadecimal digits"),
          .name = reader.parsed("checkpoint", parse_checkpoint_name, "the name of a checkpoint"),
          .version = {reader.integer("version", 0, kMostVersions)},
          .applied = reader.integer("applied", 0, kMostVersions),
          .clip_scale = read_clip_scale(reader),
          .plan = read_plan(reader.object("plan", plan_members)),
          .blocks = reader.small_integer("blocks", 1, kMostBlocks),
          .accumulation = reader.text("accumulation", kLongestName),
          .window_losses = read_losses(reader, "window_losses"),
          .flushed = reader.windows("flushed", kMostListedWindows),
          .skipped = reader.windows("skipped", kMostListedWindows),
          .loss = reader.double_or_null("loss"),
          .validation_loss = reader.double_or_null("validation_loss"),
          .parent = reader.digest_or_null("parent"),
          .ledger = reader.digest_or_null("ledger"),
          .ledger_writer = reader.parsed("ledger_writer", parse_writer_tag, "a writer's tag"),
          .configuration = reader.texts("configuration", kMostSettings, kLongestValue),
          .provenance = reader.texts("provenance", kMostSettings, kLongestValue),
          .files = read_files(reader)};
}

}  // namespace everstep::storage
