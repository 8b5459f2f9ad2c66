#include "launcher/job/resume_command.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "launcher/job/train_request.h"

namespace everstep::launcher {
namespace {

std::string shown_path(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored).lexically_normal();
  const std::filesystem::path here = whole.lexically_relative(std::filesystem::current_path(ignored));
  return here.empty() || *here.begin() == ".." ? whole.string() : here.string();
}

}  // namespace

std::optional<storage::CatalogEntry> newest_saved(const StoreLocation& location) {
  const auto store = open_checkpoint_store(location, StoreAccess::kExisting);
  if (!store) return std::nullopt;
  auto listing = (*store)->catalog().list();
  if (!listing || listing->entries.empty()) return std::nullopt;
  return std::move(listing->entries.front());
}

std::string resume_command(const Config& config) {
  const StoreLocation location{*config.setting("checkpoint-dir").text, *config.setting("job").text, ""};
  std::string command = "everstep resume --from=" + shell_word(shown_path(location.path()));
  for (const OptionSpec& option : train_options()) {
    const Setting& setting = config.setting(option.name);
    const bool is_given = setting.text && setting.source != Source::kDefault && setting.text != option.default_value();
    if (!option.is_repeated_on_resume() || !is_given) continue;
    command.append(" --").append(option.name).append("=").append(shell_word(*setting.text));
  }
  return command;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+,:@%=";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char character : text) {
    if (character == '\'') {
      word += "'\\''";
    } else {
      word += character;
    }
  }
  return word + "'";
}

}  // namespace everstep::launcher
