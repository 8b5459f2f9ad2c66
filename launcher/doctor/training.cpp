#include "launcher/doctor/training.h"

#include <optional>
#include <thread>

#include "base/text.h"
#include "launcher/checkpoint/comparison.h"
#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/job/plan_request.h"
#include "launcher/job/profile_file.h"
#include "launcher/worker/doctor/measured_model.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher::doctor {
namespace {

using storage::JsonReader;

constexpr std::chrono::minutes kTrainsWithin{10};
constexpr std::size_t kLongestLog = std::size_t{1} << 24;
constexpr int kWindow = 8;
constexpr int kSteps = 8;

// One for each core, and no more than a plan for them is worth.
int workers_of(const Place& place) {
  constexpr int kMost = 2;
  return place.workers(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost));
}

std::vector<std::string> train_words(const Place& place, const std::filesystem::path& directory) {
  const trainer::ModelConfig model = measured_model(place.device);
  const auto number = [](const char* name, int value) {
    return "--" + std::string(name) + "=" + std::to_string(value);
  };
  std::vector<std::string> words{
      sibling_program("everstep"),
      "train",
      "--etcd=none",
      "--json",
      "--reproducible",
      "--device=" + place.device_text(),
      "--data=" + (place.directory / kDoctorText).string(),
      "--data-format=text",
      "--output=" + (directory / "run").string(),
      "--checkpoint-dir=" + (directory / "checkpoints").string(),
      model.precision == trainer::Precision::kBf16 ? "--precision=bf16" : "--precision=fp32"};
  words.push_back(number("workers", workers_of(place)));
  words.push_back(number("layers", model.shape.layers));
  words.push_back(number("hidden", model.shape.hidden));
  words.push_back(number("heads", model.shape.heads));
  words.push_back(number("sequence", model.shape.sequence));
  words.push_back(number("vocabulary", model.shape.vocabulary));
  words.push_back(number("minibatch", model.minibatch));
  words.push_back(number("window", kWindow));
  words.push_back(number("steps", kSteps));
  return words;
}

// The summary among the events.
Result<storage::Json> read_summary(const std::filesystem::path& log) {
  const auto text = read_file(log.string(), kLongestLog);
  if (!text) return text.error();
  const std::size_t begin = text->rfind("\n{");
  if (begin == std::string::npos) return not_found("everstep train has printed no summary");
  return storage::parse_json(text->substr(begin + 1, text->find('\n', begin + 1) - begin - 1));
}

Result<TrainingRun> read_run(const storage::Json& summary) {
  const JsonReader reader(summary);
  TrainingRun run;
  const auto memory = reader.member("memory");
  const auto plan = reader.member("plan");
  const auto speed = reader.number_at("tokens_per_s");
  if (!memory || !plan || !speed) return reader.error("the summary lacks speed, memory or plan");
  const auto taken = memory->integer_at("peak_bytes");
  const auto predicted = memory->integer_at("predicted_bytes");
  const auto kind = plan->text_at("kind");
  const auto depth = plan->integer_at("depth", 1);
  const auto width = plan->integer_at("width", 1);
  if (!taken || !predicted || !kind || !depth || !width)
    return reader.error("the summary lacks parts of memory or plan");
  run.tokens_per_s = *speed;
  run.taken_bytes = *taken;
  run.predicted_bytes = *predicted;
  run.schedule = *kind;
  run.depth = static_cast<int>(*depth);
  run.width = static_cast<int>(*width);
  return run;
}

struct LastCheckpoint {
  std::unique_ptr<CheckpointStore> store;
  storage::CatalogEntry entry;
};

Result<LastCheckpoint> last_checkpoint(const TrainingRun& run) {
  auto store = open_checkpoint_store({(run.directory / "checkpoints").string(), "job", ""}, StoreAccess::kExisting);
  if (!store) return store.error();
  auto listing = (*store)->catalog().list();
  if (!listing) return listing.error();
  if (listing->entries.empty()) return not_found("there is no checkpoint in " + run.directory.string());
  return LastCheckpoint{std::move(*store), std::move(listing->entries.front())};
}

double milliseconds_of(const scheduler::ModelProfile& profile) {
  Tick sum = 0;
  for (const scheduler::BlockProfile& block : profile.blocks) sum += block.forward + block.backward;
  return 1e3 * to_seconds(sum);
}

}  // namespace

Result<TrainingRun> train_once(const Place& place, const std::string& name) {
  const auto directory = place.directory / name;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const auto log = directory / "train.log";
  auto program = ChildProcess::start(train_words(place, directory), log);
  if (!program) return program.error();
  EVERSTEP_TRY(wait_for_end(*program, kTrainsWithin));
  if (*program->wait_status() != 0) {
    const auto text = read_file(log.string(), kLongestLog);
    return Error{ErrorCode::kUnavailable,
                 "everstep train ended with " + end_text(*program->wait_status()) +
                     ", and said last: " + std::string(text ? last_line(*text) : ""),
                 ""};
  }
  const auto summary = read_summary(log);
  if (!summary) return summary.error();
  auto run = read_run(*summary);
  if (!run) return run;
  run->directory = directory;
  run->workers = workers_of(place);
  return run;
}

Result<ComparedRuns> compare_runs(const TrainingRun& a, const TrainingRun& b, Streams& streams) {
  const auto of_a = last_checkpoint(a);
  if (!of_a) return of_a.error();
  const auto of_b = last_checkpoint(b);
  if (!of_b) return of_b.error();
  Comparison comparison;
  EVERSTEP_TRY(compare_tensors({*of_a->store, of_a->entry}, {*of_b->store, of_b->entry}, streams, comparison));
  ComparedRuns compared;
  for (const KindTotals& total : comparison.totals) compared.tensors += total.tensors;
  for (const TensorDifference& one : comparison.tensors) compared.different.push_back(one.name);
  return compared;
}

Result<Prediction> predict_speed(const Place& place, const TrainingRun& run, const storage::Json& answer) {
  const auto profiles = JsonReader(answer).elements_at("profiles");
  if (!profiles) return profiles.error();
  Prediction prediction;
  std::optional<scheduler::ModelProfile> fastest;
  for (const JsonReader& one : *profiles) {
    const auto device = one.text_at("device");
    const auto profile = one.member("profile");
    if (!device || !profile) return one.error("a profile has a device");
    auto parsed = parse_profile(to_text(profile->json()));
    if (!parsed) return parsed.error();
    prediction.devices.push_back({*device, milliseconds_of(*parsed)});
    if (!fastest || prediction.devices.back().ms < milliseconds_of(*fastest)) fastest = *std::move(parsed);
  }
  if (!fastest) return JsonReader(answer).error("there is no profile");
  const auto kind = scheduler::parse_schedule_kind(run.schedule);
  if (!kind) return kind.error();
  scheduler::PlanOptions wishes;
  wishes.window = kWindow;
  wishes.kind = *kind;
  wishes.depth = run.depth;
  wishes.width = run.width;
  wishes.hardware = (place.device.is_host() ? cpu_device(host_memory_bytes()) : gpu_device()).hardware;
  const auto report = report_plan(*fastest, unnamed_workers(run.workers, run.workers), wishes);
  if (!report) return report.error();
  prediction.tokens_per_s = static_cast<double>(fastest->tokens_per_minibatch) * report->minibatches_per_second();
  return prediction;
}

}  // namespace everstep::launcher::doctor
