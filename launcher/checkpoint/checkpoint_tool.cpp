#include "launcher/checkpoint/checkpoint_tool.h"

#include "launcher/job/checkpoint_choice.h"
#include "launcher/job/store_options.h"

namespace everstep::launcher {

std::vector<OptionSpec> checkpoint_tool_options(std::vector<OptionSpec> others) {
  std::vector<OptionSpec> options = store_options(true);
  for (OptionSpec& option : others) options.push_back(std::move(option));
  options.push_back({.name = "json", .help = "Print JSON"});
  return options;
}

Outcome open_tool(const Config& config, Values& values, CheckpointTool& tool) {
  Outcome failure;
  tool.location = read_store_location(config, values, failure);
  if (failure) return failure;
  auto store = open_checkpoint_store(tool.location, StoreAccess::kExisting);
  if (!store) return blame_store(config, store.error());
  tool.store = std::move(store).value();
  auto listing = tool.store->catalog().list();
  if (!listing) return config.blame("checkpoint-dir", listing.error());
  tool.listing = std::move(listing).value();
  return {};
}

Outcome choose(const Config& config, const CheckpointTool& tool, std::size_t place, storage::CatalogEntry& entry) {
  auto chosen = choose_checkpoint(tool.listing, place < config.positional.size() ? config.positional[place] : "HEAD");
  if (chosen) {
    entry = std::move(chosen).value();
    return {};
  }
  if (chosen.error().code == ErrorCode::kNotFound) return Failure(chosen.error(), ExitCode::kUsage);
  return chosen.error();
}

PositionalSpec checkpoint_argument(bool required) {
  return {"CHECKPOINT",
          "A step, a name as everstep checkpoint ls prints it, or HEAD" +
              std::string(required ? "" : ", which is also the default"),
          required ? std::size_t{1} : std::size_t{0}, 1};
}

}  // namespace everstep::launcher
