#include "launcher/job/stored_jobs.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "launcher/cli/nearest.h"

namespace everstep::launcher {

// HEAD is only a mirror of etcd's: the directories of lineages are enough to go on from.
bool holds_job(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(directory / "HEAD", ignored)) return true;
  const auto is_lineage = [&](const std::filesystem::directory_entry& entry) {
    return std::filesystem::is_directory(entry.path() / "ledger", ignored);
  };
  const auto entries = std::filesystem::directory_iterator(directory, ignored);
  return std::any_of(begin(entries), end(entries), is_lineage);
}

std::vector<std::string> jobs_in(const std::filesystem::path& directory) {
  std::set<std::string> jobs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (holds_job(entry.path())) jobs.insert(entry.path().filename().string());
  }
  return {jobs.begin(), jobs.end()};
}

std::string job_hint(const std::string& job, const std::vector<std::string>& jobs) {
  constexpr std::size_t kMostListed = 10;
  std::string meant = did_you_mean(nearest_name(job, jobs));
  if (!meant.empty() || jobs.empty()) return meant;
  return jobs.size() <= kMostListed ? "there is " + comma_list(jobs) : "";
}

}  // namespace everstep::launcher
