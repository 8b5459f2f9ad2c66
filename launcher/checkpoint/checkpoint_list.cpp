#include "launcher/checkpoint/checkpoint_list.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <sys/stat.h>

#include "base/text.h"
#include "launcher/cli/json_number.h"
#include "launcher/cli/long_work.h"
#include "launcher/cli/quantities.h"
#include "launcher/cli/table.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::Json;
using storage::Manifest;

// The step of the checkpoint that this one's state descends from, where that is not the HEAD before it.
std::optional<std::int64_t> fallback_step(const CatalogEntry& entry, const std::vector<CatalogEntry>& all) {
  const storage::Head& head = entry.head;
  if (!head.parent || head.parent == head.previous) return std::nullopt;
  const auto parent = std::find_if(
      all.begin(), all.end(), [&](const CatalogEntry& candidate) { return candidate.head.manifest == *head.parent; });
  if (parent == all.end()) return std::nullopt;
  return parent->manifest.version.value;
}

std::optional<std::int64_t> time_of(const CatalogEntry& entry, const StoreLocation& location) {
  const std::string path =
      location.path() + "/" + manifest_path(entry.head.lineage, entry.head.checkpoint, entry.head.writer);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return std::int64_t{status.st_mtim.tv_sec};
}

std::string notes_of(const CheckpointRow& row) {
  std::string notes = row.is_head ? "HEAD" : "";
  const auto add = [&notes](const std::string& note) { notes += (notes.empty() ? "" : ", ") + note; };
  if (row.is_pinned) add("pinned");
  if (row.after_fallback_to) add("fell back to step " + std::to_string(*row.after_fallback_to));
  return notes;
}

Json optional_number(const std::optional<double>& number) { return number ? finite_or_null(*number) : Json(nullptr); }

}  // namespace

Result<CheckpointList> list_checkpoints(CheckpointStore& store, const StoreLocation& location) {
  const auto listing = store.catalog().list();
  if (!listing) return listing.error();
  const auto head = store.ports().head.read();
  CheckpointList list;
  list.damaged = listing->damaged;
  for (const CatalogEntry& entry : listing->entries) {
    const auto pinned = store.catalog().is_pinned(entry);
    if (!pinned) return pinned.error();
    const bool is_head = head.ok() && head->has_value() && (*head)->manifest == entry.head.manifest;
    list.rows.push_back({entry, is_head, *pinned, fallback_step(entry, listing->entries), time_of(entry, location)});
  }
  return list;
}

std::string time_text(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return {text.data(), size};
}

std::string authenticity_line(const StoreLocation& location) {
  return location.secret.empty() ? "authenticity not checked: there is no --secret-file\n" : "authenticity checked\n";
}

std::string authenticity_word(const StoreLocation& location) {
  return location.secret.empty() ? "not checked" : "checked";
}

std::string list_text(const CheckpointList& list, const StoreLocation& location, std::size_t columns) {
  Table table;
  table.columns = {{"step", Align::kRight}, {"position", Align::kRight}, {"kind"},  {"written (UTC)"},
                   {"size", Align::kRight}, {"loss", Align::kRight},     {"notes"}, {"name"}};
  for (const CheckpointRow& row : list.rows) {
    const Manifest& manifest = row.entry.manifest;
    table.rows.push_back({std::to_string(manifest.version.value), std::to_string(manifest.name.position.value),
                          std::string(to_string(trainer::cut_kind_of(manifest))),
                          row.written_at ? time_text(*row.written_at) : "-", size_text(manifest.bytes()),
                          manifest.loss ? loss_text(*manifest.loss) : "-", notes_of(row), to_string(manifest.name)});
  }
  std::string text = list.rows.empty() ? "no checkpoints\n" : to_text(table, columns);
  for (const storage::Damage& damage : list.damaged) {
    text += "damaged: " + damage.checkpoint + ": " + damage.error.message + "\n";
  }
  return text + authenticity_line(location);
}

Json summary_json(const CatalogEntry& entry) {
  const Manifest& manifest = entry.manifest;
  Json json = Json::object();
  json.set("name", to_string(manifest.name))
      .set("step", manifest.version.value)
      .set("position", manifest.name.position.value)
      .set("kind", to_string(trainer::cut_kind_of(manifest)))
      .set("generation", manifest.name.generation.value)
      .set("sequence", entry.head.sequence)
      .set("lineage", hex_text(manifest.lineage))
      .set("bytes", manifest.bytes())
      .set("loss", optional_number(manifest.loss))
      .set("validation_loss", optional_number(manifest.validation_loss));
  return json;
}

Json damage_json(const storage::Damage& damage) {
  return Json::object().set("checkpoint", damage.checkpoint).set("error", damage.error.message);
}

Json list_json(const CheckpointList& list, const StoreLocation& location) {
  Json rows = Json::array();
  for (const CheckpointRow& row : list.rows) {
    Json json = summary_json(row.entry);
    json.set("head", row.is_head).set("pinned", row.is_pinned);
    json.set("fell_back_to_step", row.after_fallback_to ? Json(*row.after_fallback_to) : Json(nullptr));
    json.set("written_at", row.written_at ? Json(*row.written_at) : Json(nullptr));
    rows.append(std::move(json));
  }
  Json damaged = Json::array();
  for (const storage::Damage& damage : list.damaged) damaged.append(damage_json(damage));
  Json json = Json::object();
  json.set("job", location.job).set("authenticity", authenticity_word(location));
  return json.set("checkpoints", std::move(rows)).set("damaged", std::move(damaged));
}

}  // namespace everstep::launcher
