#include "launcher/job/job_setup.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "launcher/job/job_names.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/lineage.h"
#include "launcher/job/patient_store.h"
#include "launcher/job/resume_rules.h"
#include "launcher/job/stored_jobs.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kFirstGeneration = "first-generation";
constexpr std::string_view kFirstWorkers = "first-workers";
constexpr std::string_view kFirstSequence = "first-sequence";
constexpr std::array<std::string_view, 3> kBeginnings{kFirstGeneration, kFirstWorkers, kFirstSequence};

using Settings = std::vector<std::pair<std::string, std::string>>;

bool is_beginning(std::string_view name) {
  return std::find(kBeginnings.begin(), kBeginnings.end(), name) != kBeginnings.end();
}

const std::string* find_setting(const Settings& settings, std::string_view name) {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const auto& one) { return one.first == name; });
  return found == settings.end() ? nullptr : &found->second;
}

// The text of the spec. What a wrong secret comes to is said in its own words: nothing is damaged.
Result<std::string> open_spec(const std::string& job, const std::string& sealed, const std::string& secret) {
  const bool has_mac = has_secret(sealed);
  const auto hashing = storage::make_openssl_hashing();
  // First the hash alone, so that a changed bit is not taken for another secret.
  auto text = storage::Seal(*hashing, "").open(sealed);
  if (!text) return text.error();
  if (has_mac && secret.empty()) {
    return invalid_argument("job '" + job + "' has a secret", "--secret-file=FILE names the file that holds it");
  }
  if (!has_mac && !secret.empty()) {
    return invalid_argument("job '" + job + "' was started without a secret", "leave --secret-file out");
  }
  if (!storage::Seal(*hashing, secret).open(sealed)) {
    return invalid_argument("job '" + job + "' was started with another secret than that of --secret-file");
  }
  return text;
}

// What of an answer, whose first read is the spec, the job's workers wrote. A spec that is damaged keeps nobody out: no
// worker can use it.
Result<elastic::TxnReply> authentic_part(const std::string& job, elastic::TxnReply reply, const std::string& secret) {
  if (reply.reads.at(0).empty()) return reply;
  const std::string spec = reply.reads[0].front().value;
  const auto opened = open_spec(job, spec, secret);
  if (!opened && opened.error().code == ErrorCode::kInvalidArgument) return opened.error();
  if (!opened) return reply;
  return JobSecret::of(secret).record_seal(elastic::Keys(job), spec).open(std::move(reply));
}

void add_difference(std::string& all, const std::string& one) { all += (all.empty() ? "" : ", ") + one; }

std::string settings_that_differ(const Settings& theirs, const Settings& mine) {
  std::set<std::string> names;
  for (const Settings& settings : {theirs, mine}) {
    for (const auto& [name, value] : settings) names.insert(name);
  }
  const std::vector<OptionSpec> options = train_options();
  std::string all;
  for (const std::string& name : names) {
    const OptionSpec* option = find_option(options, name);
    const bool is_path = option != nullptr && option->is_path;
    if (is_path || is_beginning(name)) continue;
    const std::string* old_value = find_setting(theirs, name);
    const std::string* new_value = find_setting(mine, name);
    const std::string old_text = old_value == nullptr ? "" : *old_value;
    const std::string new_text = new_value == nullptr ? "" : *new_value;
    if (!is_same_value(old_text, new_text)) add_difference(all, setting_difference(name, old_text, new_text));
  }
  return all;
}

}  // namespace

Error no_such_job(elastic::KvStore& store, const std::string& job) {
  Error error = not_found("there is no job '" + job + "' in this etcd", "everstep job ls lists those that are");
  const auto jobs = list_job_names(store);
  const std::string hint = jobs ? job_hint(job, *jobs) : "";
  if (!hint.empty()) error.hint = hint;
  return error;
}

elastic::JobSpec spec_of(const Config& config, std::uint64_t lineage, Generation first_generation,
                         const std::string& data_digest, std::int64_t first_sequence) {
  elastic::JobSpec spec;
  spec.lineage = lineage;
  spec.build = kVersion;
  spec.data_hash = data_digest;
  for (const OptionSpec& option : train_options()) {
    const auto& text = config.setting(option.name).text;
    if (text && option.is_of_job()) spec.settings.emplace_back(option.name, lasting_text(option, *text));
  }
  spec.settings.emplace_back(kFirstGeneration, std::to_string(first_generation.value));
  spec.settings.emplace_back(kFirstWorkers, config.setting("workers").text.value_or("1"));
  spec.settings.emplace_back(kFirstSequence, std::to_string(first_sequence));
  std::sort(spec.settings.begin(), spec.settings.end());
  return spec;
}

int FoundJob::first_workers() const {
  const std::string* first = find_setting(spec.settings, kFirstWorkers);
  return first == nullptr ? 1 : parse_number<int>(*first).value_or(1);
}

Generation FoundJob::first_generation() const {
  const std::string* first = find_setting(spec.settings, kFirstGeneration);
  return {first == nullptr ? 1 : parse_number<std::int64_t>(*first).value_or(1)};
}

std::int64_t FoundJob::first_sequence() const {
  const std::string* first = find_setting(spec.settings, kFirstSequence);
  return first == nullptr ? 0 : parse_number<std::int64_t>(*first).value_or(0);
}

Result<std::optional<FoundJob>> find_job(elastic::KvStore& store, const std::string& job, const std::string& secret) {
  const elastic::Keys keys(job);
  const auto reply = transact_patiently(store, {{}, {elastic::get(keys.spec()), elastic::get(keys.finished())}});
  if (!reply) return reply.error();
  if (reply->reads.at(0).empty()) return std::optional<FoundJob>();
  FoundJob found;
  found.text = reply->reads[0].front().value;
  const auto text = open_spec(job, found.text, secret);
  if (!text) return text.error();
  auto spec = elastic::parse_job_spec(*text);
  if (!spec) return spec.error();
  found.spec = std::move(spec).value();
  found.seal = JobSecret::of(secret).record_seal(keys, found.text);
  found.finished = !found.seal.open(*reply).reads.at(1).empty();
  return std::optional(std::move(found));
}

Status check_same_job(const std::string& job, const FoundJob& found, const elastic::JobSpec& mine) {
  if (found.finished) {
    return invalid_argument("job '" + job + "' is finished", "everstep job rm " + job + " makes room for another");
  }
  if (found.spec.build != mine.build) {
    return invalid_argument("job '" + job + "' runs everstep " + found.spec.build + ", and this is " + mine.build,
                            "all workers need the same build");
  }
  std::string differences;
  if (found.spec.data_hash != mine.data_hash) {
    add_difference(differences, setting_difference("data-digest", found.spec.data_hash, mine.data_hash));
  }
  const std::string settings = settings_that_differ(found.spec.settings, mine.settings);
  if (!settings.empty()) add_difference(differences, settings);
  if (differences.empty()) return {};
  return invalid_argument("job '" + job + "' runs with other settings: " + differences,
                          "give the job's own values, or name another --job");
}

Result<elastic::RecordSeal> create_job(elastic::KvStore& store, const std::string& job, elastic::JobSpec spec,
                                       const std::string& secret, const std::optional<elastic::HeadRecord>& head) {
  const elastic::Keys keys(job);
  const auto hashing = storage::make_openssl_hashing();
  spec.creation = random_lineage();
  const std::string text = storage::Seal(*hashing, secret).seal(to_text(spec));
  elastic::Txn txn{{elastic::is_absent(keys.spec()), elastic::is_absent(keys.generation())},
                   {elastic::put(keys.spec(), text)},
                   {elastic::get(keys.spec())}};
  if (head) {
    txn.then.push_back(elastic::put(keys.head(), to_text(*head)));
    txn.then.push_back(elastic::put(keys.past_head(head->sequence), to_text(*head)));
  }
  const elastic::RecordSeal seal = JobSecret::of(secret).record_seal(keys, text);
  const auto reply = transact_patiently(store, seal.seal(txn));
  if (!reply) return reply.error();
  // An earlier try may have won without anybody having told: the random number makes the text this job's own.
  const bool is_ours = !reply->succeeded && !reply->reads.at(0).empty() && reply->reads[0].front().value == text;
  if (reply->succeeded || is_ours) return seal;
  return invalid_argument("job '" + job + "' is there already", "everstep job rm " + job + " removes it");
}

Result<RemovedJob> remove_job(elastic::KvStore& store, const std::string& job, const std::string& secret, bool force) {
  const elastic::Keys keys(job);
  const auto found = transact_patiently(store, {{},
                                                {elastic::get(keys.spec()), elastic::list(keys.members()),
                                                 elastic::list(keys.prefix()), elastic::get(keys.finished())},
                                                {}});
  if (!found) return found.error();
  if (found->reads.at(2).empty()) return no_such_job(store, job);
  const auto authentic = authentic_part(job, *found, secret);
  if (!authentic) return authentic.error();
  const std::size_t members = authentic->reads.at(1).size();
  if (members > 0 && !force) {
    return invalid_argument("job '" + job + "' has " + std::to_string(members) +
                                (members == 1 ? " worker that lives" : " workers that live"),
                            "stop them first, or take the job away from them with --force");
  }
  const elastic::Revision spec = found->reads.at(0).empty() ? 0 : found->reads[0].front().modified;
  const auto removed = transact_patiently(
      store, {{elastic::modified_at(keys.spec(), spec)}, {elastic::remove_prefix(keys.prefix())}, {}});
  if (!removed) return removed.error();
  // Refused: not the job that was looked at any more. Removed by this very call, whose answer was lost, or by others.
  return RemovedJob{found->reads[2].size(), members, !authentic->reads.at(3).empty()};
}

Result<Config> config_of(const elastic::JobSpec& spec, const std::vector<Setting>& host) {
  Config config;
  config.command = "worker";
  std::set<std::string> known(kBeginnings.begin(), kBeginnings.end());
  for (const OptionSpec& option : train_options()) {
    known.insert(option.name);
    Setting setting{option.name, std::nullopt, Source::kDefault, 0};
    if (!option.is_of_job()) {
      setting.text = option.default_value();
    } else if (const std::string* told = find_setting(spec.settings, option.name)) {
      setting.text = *told;
    }
    const auto own =
        std::find_if(host.begin(), host.end(), [&](const Setting& one) { return one.name == option.name; });
    if (own != host.end() && own->text) setting = *own;
    config.settings.push_back(std::move(setting));
  }
  for (const auto& [name, value] : spec.settings) {
    if (!known.contains(name))
      return invalid_argument("the job has a setting that this program does not know: " + name);
  }
  return config;
}

}  // namespace everstep::launcher
