#include "launcher/checkpoint/checkpoint_details.h"

#include <map>
#include <string_view>

#include "base/text.h"
#include "launcher/checkpoint/checkpoint_list.h"
#include "launcher/cli/long_work.h"
#include "launcher/cli/quantities.h"
#include "launcher/cli/table.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::launcher {
namespace {

using storage::FileRecord;
using storage::Json;
using storage::Manifest;

std::string digest_text(const std::optional<storage::Digest>& digest) { return digest ? to_string(*digest) : "none"; }

std::string windows_text(const std::vector<std::int64_t>& windows) {
  constexpr std::size_t kMostListed = 8;
  std::string text = std::to_string(windows.size());
  if (windows.empty()) return text;
  text += windows.size() > kMostListed ? ": … " : ": ";
  for (std::size_t i = windows.size() - std::min(windows.size(), kMostListed); i < windows.size(); ++i) {
    text += std::to_string(windows[i]) + (i + 1 < windows.size() ? " " : "");
  }
  return text;
}

std::string facts_text(const storage::CatalogEntry& entry, const StoreLocation& location) {
  const Manifest& manifest = entry.manifest;
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text.append(name).append(18 - name.size(), ' ').append(value).append("\n");
  };
  line("checkpoint", to_string(manifest.name));
  line("job", manifest.job + ", lineage " + hex_text(manifest.lineage));
  line("directory", location.path() + "/" + directory_of(manifest.lineage, manifest.name));
  line("step", std::to_string(manifest.version.value) + ", " + std::to_string(manifest.applied) + " applied");
  line("position", std::to_string(manifest.name.position.value) + ", " +
                       std::to_string(manifest.minibatches_into_window()) + " into the window");
  line("kind", std::string(to_string(trainer::cut_kind_of(manifest))));
  line("plan", plan_text(manifest.plan));
  line("sums", manifest.accumulation);
  line("loss", manifest.loss ? loss_text(*manifest.loss) : "-");
  line("validation loss", manifest.validation_loss ? loss_text(*manifest.validation_loss) : "-");
  line("flushed windows", windows_text(manifest.flushed));
  line("skipped windows", windows_text(manifest.skipped));
  line("manifest", to_string(entry.head.manifest));
  line("parent", digest_text(manifest.parent));
  line("ledger", digest_text(manifest.ledger));
  line("size", size_text(manifest.bytes()) + " in " + std::to_string(manifest.files.size()) + " files");
  return text;
}

Table file_table(const Manifest& manifest) {
  Table table;
  table.columns = {{"block", Align::kRight}, {"kind"}, {"version", Align::kRight}, {"tensors", Align::kRight},
                   {"size", Align::kRight},  {"file"}};
  for (const FileRecord& file : manifest.files) {
    table.rows.push_back({std::to_string(file.block), std::string(to_string(file.kind)),
                          std::to_string(file.version.value), std::to_string(file.tensors.size()), size_text(file.size),
                          path_of(manifest.lineage, file)});
  }
  return table;
}

std::string settings_text(std::string_view title, const storage::Settings& settings) {
  std::string text = "\n";
  text.append(title).append(":\n");
  for (const auto& [name, value] : settings) {
    if (!value.empty()) text.append("  ").append(name).append(" = ").append(value).append("\n");
  }
  return text;
}

Json settings_json(const storage::Settings& settings) {
  Json json = Json::object();
  for (const auto& [name, value] : settings) json.set(name, value);
  return json;
}

template <typename Number>
Json array_of(const std::vector<Number>& numbers) {
  Json json = Json::array();
  for (const Number number : numbers) json.append(number);
  return json;
}

Json plan_json(const storage::StoredPlan& plan) {
  Json json = Json::object();
  json.set("schedule", plan.schedule).set("depth", plan.depth).set("chunks_per_device", plan.chunks_per_device);
  json.set("width", plan.width).set("window", plan.window).set("preload", plan.preload);
  if (plan.pipelines > 0) json.set("pipelines", plan.pipelines).set("lag", plan.lag);
  if (plan.provisional > 0) json.set("provisional", plan.provisional);
  return json.set("cuts", array_of(plan.cuts));
}

Json file_json(const Manifest& manifest, const FileRecord& file) {
  Json tensors = Json::array();
  for (const storage::TensorSpec& tensor : file.tensors) {
    Json json = Json::object();
    json.set("name", tensor.name).set("type", to_string(tensor.type)).set("shape", array_of(tensor.shape));
    tensors.append(std::move(json));
  }
  Json json = Json::object();
  json.set("block", file.block).set("kind", to_string(file.kind)).set("version", file.version.value);
  json.set("path", path_of(manifest.lineage, file)).set("bytes", file.size).set("sha256", to_string(file.sha256));
  return json.set("tensors", std::move(tensors));
}

Json digest_json(const std::optional<storage::Digest>& digest) {
  return digest ? Json(to_string(*digest)) : Json(nullptr);
}

}  // namespace

std::string plan_text(const storage::StoredPlan& plan) {
  std::string text = plan.schedule + " D=" + std::to_string(plan.depth);
  if (plan.pipelines > 0) text += " P=" + std::to_string(plan.pipelines);
  text += " W=" + std::to_string(plan.width) + " M=" + std::to_string(plan.window);
  if (plan.lag > 0) text += " lag=" + std::to_string(plan.lag);
  if (plan.provisional > 0) text += " provisional=" + std::to_string(plan.provisional);
  text += ", cuts";
  for (const int cut : plan.cuts) text += " " + std::to_string(cut);
  return text;
}

std::string details_text(const storage::CatalogEntry& entry, const StoreLocation& location, std::size_t columns) {
  return facts_text(entry, location) + "\n" + to_text(file_table(entry.manifest), columns) +
         settings_text("configuration", entry.manifest.configuration) +
         settings_text("provenance", entry.manifest.provenance) + "\n" + authenticity_line(location);
}

Json details_json(const storage::CatalogEntry& entry, const StoreLocation& location) {
  const Manifest& manifest = entry.manifest;
  Json files = Json::array();
  for (const FileRecord& file : manifest.files) files.append(file_json(manifest, file));
  Json json = summary_json(entry);
  json.set("job", manifest.job).set("authenticity", authenticity_word(location)).set("applied", manifest.applied);
  json.set("minibatches_into_window", manifest.minibatches_into_window()).set("blocks", manifest.blocks);
  json.set("plan", plan_json(manifest.plan)).set("accumulation", manifest.accumulation);
  json.set("flushed", array_of(manifest.flushed)).set("skipped", array_of(manifest.skipped));
  json.set("manifest", to_string(entry.head.manifest)).set("parent", digest_json(manifest.parent));
  json.set("ledger", digest_json(manifest.ledger)).set("configuration", settings_json(manifest.configuration));
  return json.set("provenance", settings_json(manifest.provenance)).set("files", std::move(files));
}

}  // namespace everstep::launcher
