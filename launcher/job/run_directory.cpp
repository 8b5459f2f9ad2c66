#include "launcher/job/run_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace everstep::launcher {

std::string default_run_path(std::time_t now, std::uint64_t lineage) {
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &utc);
  return "runs/" + std::string(text.data(), size) + "-" + hex_text(lineage);
}

Result<RunDirectory> make_run_directory(const std::string& path, bool goes_on) {
  const RunDirectory directory{path};
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return invalid_argument("cannot make the directory " + path + ": " + error.message());
  const std::array files{directory.metrics(), directory.config(), directory.worker_log(0)};
  const auto* old = std::find_if(files.begin(), files.end(),
                                 [&](const std::string& file) { return std::filesystem::exists(file, error); });
  if (goes_on) std::filesystem::remove(directory.end(), error);  // the word of the run before
  if (goes_on || old == files.end()) return directory;
  return invalid_argument(path + " already holds a run: " + *old + " exists", "name another directory, or remove it");
}

}  // namespace everstep::launcher
