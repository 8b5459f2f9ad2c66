#include "launcher/job/resume_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/cli/nearest.h"
#include "launcher/job/elastic_defaults.h"
#include "launcher/job/elastic_options.h"
#include "launcher/job/stored_jobs.h"
#include "launcher/job/stored_model.h"
#include "launcher/job/train_request.h"

namespace everstep::launcher {
namespace {

using Path = std::filesystem::path;

constexpr std::array<std::string_view, 2> kOfTheCommand{"checkpoint-dir", "resume"};
// What --resume finds out better than a checkpoint can tell: memory is this host's, and the learning rate's end has
// rules of its own.
constexpr std::array<std::string_view, 2> kFoundOut{"memory-gib", "lr-steps"};

template <typename Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<StoredPlace> choose_job(const Path& directory, const std::string& job) {
  if (!job.empty()) return StoredPlace{directory.string(), job};
  const std::vector<std::string> jobs = jobs_in(directory);
  if (jobs.size() == 1) return StoredPlace{directory.string(), jobs.front()};
  if (jobs.empty()) {
    return invalid_argument(directory.string() + " holds no job's checkpoints",
                            "name what --checkpoint-dir of everstep train named");
  }
  return invalid_argument(directory.string() + " holds several jobs: " + comma_list(jobs), "name one with --job");
}

StoredPlace place_in_job(const Path& job, const std::optional<std::string>& checkpoint) {
  return {job.parent_path().string(), job.filename().string(), checkpoint};
}

bool is_from_checkpoint(const std::string& name, bool is_elastic) {
  if (name == "workers") return true;
  if (is_local_option(name) || is_among(kOfTheCommand, name) || is_among(kFoundOut, name)) return false;
  const std::vector<OptionSpec> membership = membership_options();
  return is_elastic || std::none_of(membership.begin(), membership.end(),
                                    [&](const OptionSpec& option) { return option.name == name; });
}

}  // namespace

Result<StoredPlace> find_stored_place(const std::string& path, const std::string& job) {
  std::error_code error;
  Path place = std::filesystem::absolute(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (!std::filesystem::is_directory(place, error)) return invalid_argument(path + " is no directory");
  if (holds_job(place)) return place_in_job(place, std::nullopt);
  // <job>/<lineage>/<checkpoint>
  const Path above = place.parent_path().parent_path();
  if (holds_job(above)) return place_in_job(above, place.filename().string());
  return choose_job(place, job);
}

std::vector<OptionSpec> resume_options() {
  std::vector<OptionSpec> options;
  for (OptionSpec& option : train_options()) {
    if (is_among(kOfTheCommand, option.name)) continue;
    option.default_text.clear();
    option.required = false;
    options.push_back(std::move(option));
  }
  return options;
}

Config resume_config(const Config& given, const storage::Settings& stored, const StoredPlace& place,
                     const std::string& resume) {
  Config config{given.command, given.file_path, {}, {}};
  const bool is_elastic = given.setting("etcd").text != "none";
  for (const OptionSpec& option : train_options()) {
    Setting setting{option.name, option.default_value(), Source::kDefault, 0};
    const std::string before(setting_of(stored, option.name));
    if (!is_among(kOfTheCommand, option.name) && given.setting(option.name).source != Source::kDefault) {
      setting = given.setting(option.name);
    } else if (is_from_checkpoint(option.name, is_elastic) && !before.empty() && before != option.default_text) {
      setting.text = before;
      setting.source = Source::kFlag;  // where it stood when the job was started
    }
    config.settings.push_back(std::move(setting));
  }
  for (const auto& [name, text] :
       {std::pair("checkpoint-dir", place.directory), std::pair("job", place.job), std::pair("resume", resume)}) {
    set_setting(config, name, text, Source::kFlag);
  }
  return config;
}

}  // namespace everstep::launcher
