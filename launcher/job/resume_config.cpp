#include "launcher/job/resume_config.h"

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

// Workers that neither come nor go have no use for what the checkpoint says about those that do.
bool is_from_checkpoint(const OptionSpec& option, bool is_elastic) {
  const bool has_use = is_elastic || find_option(membership_options(), option.name) == nullptr;
  return has_use && option.is_kept_on_resume();
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
    if (option.on_resume == OnResume::kImplied) continue;
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
    if (option.on_resume != OnResume::kImplied && given.setting(option.name).source != Source::kDefault) {
      setting = given.setting(option.name);
    } else if (is_from_checkpoint(option, is_elastic) && !before.empty() && before != option.default_text) {
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
