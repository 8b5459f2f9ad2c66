#include "launcher/job/run_word.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "launcher/cli/files.h"
#include "launcher/cli/log_time.h"
#include "launcher/job/resume_command.h"
#include "storage/json/json.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestWord = std::size_t{1} << 20;

std::string state_of(const Outcome& outcome) {
  if (!outcome) return "finished";
  return outcome->error.code == ErrorCode::kCancelled ? "stopped" : "failed";
}

bool has_checkpoint(const std::string& directory, const Config& config) {
  StoreLocation location{directory, *config.setting("job").text, ""};
  if (config.is_set("secret-file")) {
    if (auto secret = read_secret_file(*config.setting("secret-file").text)) location.secret = *std::move(secret);
  }
  return newest_saved(location).has_value();
}

// -1: it is not there, or may not be opened.
int open_directory(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

}  // namespace

std::string to_text(const RunWord& word) {
  storage::Json json = storage::Json::object();
  json.set("state", word.state).set("error", word.error).set("exit_code", word.exit_code);
  json.set("ended_ms", word.ended_ms).set("checkpoint_dir", word.checkpoint_dir);
  json.set("resume", word.resume).set("summary", word.summary);
  return storage::to_text(json) + "\n";
}

Result<RunWord> parse_run_word(std::string_view text) {
  const auto json = storage::parse_json(text);
  if (!json) return json.error();
  const storage::JsonReader reader(*json);
  RunWord word;
  using Member = std::pair<const char*, std::string*>;
  for (const auto& [name, value] :
       {Member("state", &word.state), Member("error", &word.error), Member("checkpoint_dir", &word.checkpoint_dir),
        Member("resume", &word.resume), Member("summary", &word.summary)}) {
    auto told = reader.text_at(name);
    if (!told) return told.error();
    *value = std::move(told).value();
  }
  const auto exit_code = reader.integer_at("exit_code", 0, 255);
  if (!exit_code) return exit_code.error();
  const auto ended_ms = reader.integer_at("ended_ms", 0);
  if (!ended_ms) return ended_ms.error();
  word.exit_code = static_cast<int>(*exit_code);
  word.ended_ms = *ended_ms;
  return word;
}

std::optional<RunWord> read_run_word(const RunDirectory& directory) {
  const auto text = read_file(directory.end(), kLargestWord);
  if (!text) return std::nullopt;
  auto word = parse_run_word(*text);
  return word ? std::optional(std::move(word).value()) : std::nullopt;
}

Outcome leave_word(const RunDirectory& directory, const Config& config, const std::string& summary, Outcome outcome) {
  RunWord word;
  word.state = state_of(outcome);
  word.ended_ms = wall_clock_ms();
  word.summary = summary;
  if (config.is_set("checkpoint-dir")) {
    word.checkpoint_dir = std::filesystem::absolute(*config.setting("checkpoint-dir").text).lexically_normal().string();
  }
  if (outcome && !word.checkpoint_dir.empty() && has_checkpoint(word.checkpoint_dir, config)) {
    word.resume = resume_command(config);
  }
  if (outcome) {
    word.error = outcome->error.message;
    word.exit_code = static_cast<int>(outcome->exit_code);
  }
  if (!word.resume.empty() && summary.find(word.resume) == std::string::npos) {
    std::string& hint = outcome->error.hint;
    hint += (hint.empty() ? "" : "; ") + word.resume + " goes on";
  }
  // What cannot be written is not known later, which is no reason to fail now.
  (void)write_file(directory.end(), to_text(word));
  return outcome;
}

Result<RunLock> RunLock::take(const std::string& run_directory) {
  RunLock lock(open_directory(run_directory));
  // Whoever asks whether it is held has it for an instant.
  constexpr int kLooks = 20;
  constexpr std::chrono::milliseconds kPause{5};
  for (int tries = 0; tries < kLooks; ++tries, std::this_thread::sleep_for(kPause)) {
    if (lock.fd_ < 0 || ::flock(lock.fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return lock;
  }
  return Error{ErrorCode::kUnavailable, "another everstep train runs in " + run_directory, "name another --output"};
}

bool RunLock::is_locked(const std::string& run_directory) {
  const RunLock lock(open_directory(run_directory));
  return lock.fd_ >= 0 && ::flock(lock.fd_, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace everstep::launcher
