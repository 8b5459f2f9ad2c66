#include "launcher/job/checkpoint_request.h"

#include <string>
#include <string_view>

#include "base/text.h"
#include "launcher/cli/values.h"
#include "launcher/job/retention_options.h"
#include "launcher/job/secret_check.h"
#include "launcher/job/store_options.h"

namespace everstep::launcher {
namespace {

constexpr int kMost = 1'000'000;

std::vector<OptionSpec> schedule_of_saves() {
  return {
      {.name = "checkpoint-every",
       .value_name = "N",
       .default_text = "10",
       .help = "Updates between checkpoints; with an r behind it, rounds: 3r also saves inside windows",
       .on_resume = OnResume::kMayChange},
      {.name = "resume",
       .value_name = "STEP",
       .default_text = "no",
       .help = "Go on from the newest checkpoint that verifies, or from that step; with auto, from the beginning if "
               "there is none yet",
       .side = OptionSide::kCommand,
       .on_resume = OnResume::kImplied,
       .implicit_text = "newest"},
      drop_secret_option(),
  };
}

// "10" updates or "3r" rounds.
bool read_interval(const std::string& text, trainer::CheckpointPolicy& policy) {
  std::string_view digits = text;
  const bool is_rounds = digits.ends_with('r');
  if (is_rounds) digits.remove_suffix(1);
  const auto number = parse_number<int>(digits);
  if (!number || *number < 1 || *number > kMost) return false;
  if (is_rounds) {
    policy.every_rounds = *number;
  } else {
    policy.every_updates = *number;
  }
  return true;
}

std::optional<ResumeWish> parse_resume(std::string_view text) {
  using Kind = ResumeWish::Kind;
  if (text == "no") return ResumeWish{};
  if (text == "newest") return ResumeWish{Kind::kNewest, 0};
  if (text == "auto") return ResumeWish{Kind::kAuto, 0};
  const auto step = parse_number<std::int64_t>(text);
  if (!step || *step < 0) return std::nullopt;
  return ResumeWish{Kind::kStep, *step};
}

// A file or an environment may serve commands that need no directory, and workers are told all defaults.
Outcome refuse_without_directory(const Config& config) {
  for (const OptionSpec& option : checkpoint_options()) {
    const Setting& setting = config.setting(option.name);
    if (setting.source == Source::kFlag && setting.text != option.default_value()) {
      return config.reject(option.name, "needs a place for checkpoints", "add --checkpoint-dir=DIR");
    }
  }
  return {};
}

}  // namespace

std::vector<OptionSpec> checkpoint_options() {
  std::vector<OptionSpec> options = store_options(false);
  std::vector<OptionSpec> more = schedule_of_saves();
  const std::vector<OptionSpec> retention = retention_options();
  more.insert(more.begin() + 1, retention.begin(), retention.end());
  options.insert(options.begin() + 1, more.begin(), more.end());
  return options;
}

std::optional<CheckpointRequest> read_checkpoint_request(const Config& config, Outcome& failure) {
  if (!config.is_set("checkpoint-dir")) {
    failure = refuse_without_directory(config);
    return std::nullopt;
  }
  Values values(config);
  CheckpointRequest request;
  request.retention = read_retention(values);
  request.policy.at_end = true;
  const std::string interval = values.text("checkpoint-every");
  const auto resume = parse_resume(values.text("resume"));
  request.store = read_store_location(config, values, failure);
  if (failure) return std::nullopt;
  if (!read_interval(interval, request.policy)) {
    failure = config.reject("checkpoint-every", "expected a number of updates, or of rounds with an r behind it",
                            "--checkpoint-every=10 or --checkpoint-every=3r");
  } else if (!resume) {
    failure = config.reject("resume", "expected a step, newest, auto or no", "--resume alone means the newest");
  } else {
    request.resume = *resume;
  }
  return request;
}

}  // namespace everstep::launcher
