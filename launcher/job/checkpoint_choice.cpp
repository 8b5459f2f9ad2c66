#include "launcher/job/checkpoint_choice.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "base/text.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::CatalogListing;
using storage::Damage;

std::string list_steps(const CatalogListing& listing) {
  constexpr std::size_t kMostListed = 20;
  std::set<std::int64_t> steps;
  for (const CatalogEntry& entry : listing.entries) steps.insert(entry.manifest.version.value);
  std::string text;
  for (auto step = steps.rbegin(); step != steps.rend() && text.size() < 6 * kMostListed; ++step) {
    text += (text.empty() ? "" : ", ") + std::to_string(*step);
  }
  return text;
}

std::string directory_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

Result<CatalogEntry> newest(const CatalogListing& listing) {
  if (!listing.entries.empty()) return listing.entries.front();
  if (listing.damaged.empty()) return not_found("there is no checkpoint");
  return Error{ErrorCode::kDataLoss, "there is no good checkpoint: " + listing.damaged.front().error.message, ""};
}

}  // namespace

Result<CatalogEntry> choose_checkpoint(const CatalogListing& listing, std::string_view wanted) {
  if (wanted == "HEAD" || wanted == "newest") return newest(listing);
  const auto step = parse_number<std::int64_t>(wanted);
  for (const CatalogEntry& entry : listing.entries) {
    if (step ? entry.manifest.version.value == *step : to_string(entry.manifest.name) == wanted) return entry;
  }
  for (const Damage& damage : listing.damaged) {
    if (directory_name(damage.checkpoint) == wanted) return damage.error;
  }
  const std::string what = step ? "at step " + std::to_string(*step) : "'" + std::string(wanted) + "'";
  const std::string steps = list_steps(listing);
  return not_found("there is no checkpoint " + what,
                   steps.empty() ? "there is none at all" : "there are those of steps " + steps);
}

}  // namespace everstep::launcher
