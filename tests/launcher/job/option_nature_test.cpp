#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <gmock/gmock.h>

#include "launcher/job/job_setup.h"
#include "launcher/job/plan_request.h"
#include "launcher/job/resume_command.h"
#include "launcher/job/resume_config.h"
#include "launcher/job/resume_rules.h"
#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using Names = std::set<std::string>;

constexpr const char* kOldText = "7";  // no option's default
constexpr const char* kNewText = "8";

// What a job's spec leaves out.
const Names kLocal{"advertise", "bind",       "drop-secret", "etcd",   "etcd-ca",    "etcd-cert", "etcd-key",
                   "job",       "json",       "metrics",     "notice", "notice-url", "output",    "etcd-plain-text",
                   "restart",   "port-range", "resume",      "tls-ca", "tls-cert",   "tls-key",   "secret-file",
                   "trace",     "wire",       "workers"};
const Names kMembership{"etcd-outage-limit", "hang-limit",  "join-debounce", "join-interval",
                        "lease-ttl",         "min-workers", "rebalance"};

Names names_of(const std::vector<OptionSpec>& options) {
  Names names;
  for (const OptionSpec& option : options) names.insert(option.name);
  return names;
}

Names without(Names names, const Names& others) {
  std::erase_if(names, [&](const std::string& name) { return others.contains(name); });
  return names;
}

Config config_with_all(const std::vector<OptionSpec>& options, const std::string& text) {
  Config config{"train", "", {}, {}};
  for (const OptionSpec& option : options) config.settings.push_back({option.name, text, Source::kFlag, 0});
  return config;
}

// Of the command that goes on, with nothing given to it but --etcd.
Config resumed_config(const std::optional<std::string>& etcd) {
  Config given{"resume", "", {}, {}};
  for (const OptionSpec& option : resume_options()) {
    given.settings.push_back({option.name, std::nullopt, Source::kDefault, 0});
    if (option.name == "etcd") given.settings.back().text = etcd;
  }
  const storage::Settings stored = stored_settings(config_with_all(train_options(), kOldText), "10-aa");
  return resume_config(given, stored, {"/saves", "first"}, "newest");
}

Names settings_with(const Config& config, const std::string& text) {
  Names names;
  for (const Setting& setting : config.settings) {
    if (setting.text == text) names.insert(setting.name);
  }
  return names;
}

// Whoever adds an option decides here, too: the defaults would be the strictest.
TEST(OptionNature, IsGivenToEveryOptionOnPurpose) {
  using Nature = std::pair<OptionSide, OnResume>;
  std::map<Nature, Names> natures;
  for (const OptionSpec& option : train_options()) natures[{option.side, option.on_resume}].insert(option.name);
  const std::map<Nature, Names> expected{
      {{OptionSide::kJob, OnResume::kMustMatch},
       {"model",
        "layers",
        "hidden",
        "heads",
        "sequence",
        "vocabulary",
        "seed",
        "next-sentence",
        "dropout",
        "precision",
        "minibatch",
        "window",
        "lr",
        "stash",
        "lr-decay",
        "warmup",
        "weight-decay",
        "beta1",
        "beta2",
        "clip",
        "emulate",
        "reproducible",
        "data-format",
        "eval-minibatches",
        "validation-fraction",
        "eval-every"}},
      {{OptionSide::kJob, OnResume::kMayChange},
       {"steps",
        "device",
        "transport",
        "min-lr",
        "schedule",
        "depth",
        "width",
        "lag",
        "provisional",
        "emulate-link",
        "pipelines",
        "shapes",
        "redundancy",
        "recompute",
        "timeout",
        "data",
        "explode",
        "synchronous",
        "checkpoint-every",
        "keep-last",
        "keep-every",
        "keep-best",
        "lease-ttl",
        "hang-limit",
        "rebalance",
        "min-workers",
        "compare-replicas",
        "join-debounce",
        "join-interval",
        "etcd-outage-limit",
        "max-skipped-updates"}},
      {{OptionSide::kJob, OnResume::kAnew}, {"lr-steps", "memory-gib"}},
      {{OptionSide::kJob, OnResume::kImplied}, {"checkpoint-dir"}},
      {{OptionSide::kHost, OnResume::kMayChange}, {"workers"}},
      {{OptionSide::kHost, OnResume::kAnew},
       {"etcd", "etcd-ca", "etcd-cert", "etcd-key", "etcd-plain-text", "secret-file", "bind", "advertise", "port-range",
        "wire", "tls-ca", "tls-cert", "tls-key", "metrics", "notice", "notice-url", "restart"}},
      {{OptionSide::kCommand, OnResume::kMustMatch}, {"job"}},
      {{OptionSide::kCommand, OnResume::kAnew}, {"drop-secret", "json", "output", "trace"}},
      {{OptionSide::kCommand, OnResume::kImplied}, {"resume"}},
  };
  EXPECT_EQ(natures, expected);
}

TEST(OptionNature, SaysOfEveryFileThatItIsOne) {
  const Names file_words{"DIR", "FILE", "PATH"};
  for (const OptionSpec& option : train_options()) {
    EXPECT_EQ(option.is_path, file_words.contains(option.value_name)) << option.name;
  }
}

// An import asks for these alone.
TEST(OptionNature, KnowsWhatTheModelIs) {
  EXPECT_EQ(names_of(shape_options()),
            (Names{"model", "layers", "hidden", "heads", "sequence", "vocabulary", "next-sentence"}));
}

TEST(OptionNature, KeepsWhatIsLocalOutOfAJobsSpec) {
  const elastic::JobSpec spec = spec_of(config_with_all(train_options(), kOldText), 1, Generation{1}, "10-aa");
  Names expected = without(names_of(train_options()), kLocal);
  expected.insert({"first-generation", "first-workers", "first-sequence"});
  Names told;
  Names absolute;
  for (const auto& [name, text] : spec.settings) {
    told.insert(name);
    if (text == (std::filesystem::current_path() / kOldText).string()) absolute.insert(name);
  }
  EXPECT_EQ(told, expected);
  EXPECT_EQ(absolute, (Names{"checkpoint-dir", "data"}));

  elastic::JobSpec empty;
  const auto config = config_of(empty, {});
  ASSERT_TRUE(config) << config.error();
  for (const OptionSpec& option : train_options()) {
    const auto expected_text = kLocal.contains(option.name) ? option.default_value() : std::nullopt;
    EXPECT_EQ(config->setting(option.name).text, expected_text) << option.name;
  }
}

TEST(OptionNature, LetsWorkersOfAJobDifferInPathsOnly) {
  for (const OptionSpec& option : train_options()) {
    if (kLocal.contains(option.name)) continue;
    FoundJob found;
    elastic::JobSpec mine;
    found.spec.settings = {{option.name, kOldText}};
    mine.settings = {{option.name, kNewText}};
    const bool may_differ = option.name == "checkpoint-dir" || option.name == "data";
    EXPECT_EQ(check_same_job("first", found, mine).ok(), may_differ) << option.name;
  }
}

TEST(OptionNature, DecidesWhatAResumeRefuses) {
  Names refused;
  for (const OptionSpec& option : train_options()) {
    if (!check_same_settings({{option.name, kOldText}}, {{option.name, kNewText}})) refused.insert(option.name);
  }
  EXPECT_EQ(refused, (Names{"beta1",
                            "beta2",
                            "clip",
                            "data-format",
                            "dropout",
                            "emulate",
                            "eval-every",
                            "heads",
                            "hidden",
                            "job",
                            "layers",
                            "lr",
                            "lr-decay",
                            "minibatch",
                            "model",
                            "precision",
                            "reproducible",
                            "seed",
                            "next-sentence",
                            "sequence",
                            "stash",
                            "vocabulary",
                            "warmup",
                            "window",
                            "weight-decay",
                            "eval-minibatches",
                            "validation-fraction"}));
  EXPECT_FALSE(check_same_settings({{"data-digest", kOldText}}, {{"data-digest", kNewText}})) << "is no option";
}

TEST(OptionNature, DecidesWhatAResumeTakesFromTheCheckpoint) {
  Names expected = without(names_of(train_options()), kLocal);
  expected = without(expected, {"checkpoint-dir", "memory-gib", "lr-steps"});
  expected.insert("workers");
  EXPECT_EQ(settings_with(resumed_config(std::nullopt), kOldText), expected);
  EXPECT_EQ(settings_with(resumed_config("none"), kOldText), without(expected, kMembership));
}

TEST(OptionNature, LeavesToTheResumeWhatFollowsFromItsCheckpoint) {
  EXPECT_EQ(without(names_of(train_options()), names_of(resume_options())), (Names{"checkpoint-dir", "resume"}));
}

TEST(OptionNature, HasTheHostsOptionsRepeatedOnAResume) {
  std::istringstream words(resume_command(config_with_all(train_options(), kOldText)));
  Names repeated;
  for (std::string word; words >> word;) {
    if (word.starts_with("--") && !word.starts_with("--from=")) repeated.insert(word.substr(2, word.find('=') - 2));
  }
  EXPECT_EQ(repeated, without(kLocal, {"drop-secret", "job", "json", "output", "resume", "trace", "workers"}));
}

}  // namespace
}  // namespace everstep::launcher
