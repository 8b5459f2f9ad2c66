#include "launcher/status/ended_run.h"

#include <array>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/json_number.h"
#include "launcher/cli/log_time.h"
#include "launcher/cli/printable.h"
#include "launcher/cli/quantities.h"
#include "launcher/job/resume_command.h"
#include "launcher/job/train_request.h"
#include "launcher/status/job_address.h"
#include "launcher/status/status_lines.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestConfig = std::size_t{1} << 20;

// The configuration that the run was made with.
Result<Config> config_of(const RunDirectory& directory) {
  auto text = read_file(directory.config(), kLargestConfig);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return invalid_argument("there is no run in " + directory.path + ": " + directory.config() + " is missing",
                            "--dir names what everstep train has as --output");
  }
  if (!text) return text.error();
  CommandSpec spec{.name = "train", .options = train_options()};
  // What names a file to write counts here, too: nothing is written.
  for (OptionSpec& option : spec.options) option.command_line_only = false;
  return merge_config(spec, {.args = {}, .file = ConfigFile{directory.config(), *std::move(text)}});
}

std::string text_of(const Config& config, std::string_view name) { return config.setting(name).text.value_or(""); }

// A run that was killed could not say so.
RunWord word_of_killed(const Config& config) {
  RunWord word;
  word.state = "killed";
  word.error = "everstep train ended without a word";
  if (config.is_set("checkpoint-dir")) {
    word.checkpoint_dir = std::filesystem::absolute(text_of(config, "checkpoint-dir")).lexically_normal().string();
  }
  return word;
}

std::string ended_at(const RunWord& word) {
  std::array<char, kLogTimeSize> room{};
  constexpr std::size_t kName = 5;  // "time="
  const std::string_view time = write_log_time(word.ended_ms, room);
  return std::string(time.substr(kName, time.size() - kName - 1));
}

// "stopped after 37 of 100 steps: SIGINT, exit code 75, 2026-11-17T22:05:59.123Z"
std::string how_it_ended(const RunWord& word) {
  std::string text = word.error.empty() ? "all steps are made" : word.error;
  if (word.state != "killed") text += ", exit code " + std::to_string(word.exit_code) + ", " + ended_at(word);
  return text;
}

}  // namespace

RunPhase phase_of(const std::string& run_directory) {
  const RunDirectory directory{run_directory};
  if (std::filesystem::exists(job_address_file(run_directory))) return RunPhase::kRunning;
  const bool has_begun = std::filesystem::exists(directory.config());
  if (!RunLock::is_locked(run_directory)) return has_begun ? RunPhase::kEnded : RunPhase::kNone;
  const auto config = config_of(directory);
  return config && config->setting("etcd").text == "none" ? RunPhase::kFixed : RunPhase::kStarting;
}

Result<EndedRun> read_ended_run(const std::string& run_directory, const std::string& secret) {
  const RunDirectory directory{run_directory};
  const auto config = config_of(directory);
  if (!config) return config.error();
  EndedRun run;
  run.directory = run_directory;
  run.job = text_of(*config, "job");
  run.steps = parse_number<std::int64_t>(text_of(*config, "steps")).value_or(0);
  run.word = read_run_word(directory).value_or(word_of_killed(*config));
  if (run.word.checkpoint_dir.empty()) return run;
  run.head = newest_saved({run.word.checkpoint_dir, run.job, secret});
  if (run.word.state == "killed" && run.head) run.word.resume = resume_command(*config);
  return run;
}

std::string ended_run_text(const EndedRun& run) {
  StatusLines lines;
  if (run.head) {
    const storage::Manifest& manifest = run.head->manifest;
    const std::string of_all = run.steps > 0 ? " of " + std::to_string(run.steps) : "";
    lines.add("step", std::to_string(manifest.version.value) + of_all +
                          (manifest.loss ? ", loss " + loss_text(*manifest.loss) : std::string()));
    lines.add("HEAD", head_text(manifest.version.value, manifest.name.position, run.head->head.sequence,
                                manifest.name.generation));
  } else {
    lines.add("HEAD", "no checkpoint");
  }
  lines.add("ended", how_it_ended(run.word));
  if (!run.word.resume.empty()) lines.add("resume", run.word.resume);
  return "job " + printable(run.job) + ": " + printable(run.word.state) + "\n" + lines.take();
}

storage::Json ended_run_json(const EndedRun& run) {
  using storage::Json;
  Json head(nullptr);
  if (run.head) {
    const storage::Manifest& manifest = run.head->manifest;
    head = Json::object()
               .set("step", manifest.version.value)
               .set("position", manifest.name.position.value)
               .set("sequence", run.head->head.sequence)
               .set("generation", manifest.name.generation.value)
               .set("loss", manifest.loss ? finite_or_null(*manifest.loss) : Json(nullptr));
  }
  return Json::object()
      .set("job", run.job)
      .set("state", run.word.state)
      .set("why", run.word.error)
      .set("exit_code", run.word.state == "killed" ? Json(nullptr) : Json(run.word.exit_code))
      .set("ended", run.word.state == "killed" ? Json(nullptr) : Json(ended_at(run.word)))
      .set("steps", run.steps)
      .set("head", std::move(head))
      .set("resume", run.word.resume.empty() ? Json(nullptr) : Json(run.word.resume));
}

}  // namespace everstep::launcher
