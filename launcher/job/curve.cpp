#include "launcher/job/curve.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "launcher/cli/json_number.h"
#include "launcher/job/curve_file.h"
#include "storage/json/json.h"
#include "trainer/update/update_exchange.h"

namespace everstep::launcher {
namespace {

using storage::Json;

constexpr std::size_t kMostNoted = 1 << 16;

// Another committer is at it, for as long as it takes to write some lines.
Result<std::unique_ptr<storage::Lock>> lock_patiently(storage::FileSystem& files, const std::string& path) {
  constexpr int kTries = 40;
  constexpr std::chrono::milliseconds kPause{50};
  auto lock = files.lock(path);
  for (int i = 1; i < kTries && !lock; ++i) {
    std::this_thread::sleep_for(kPause);
    lock = files.lock(path);
  }
  return lock;
}

}  // namespace

std::string curve_path(const std::string& job_directory, std::uint64_t lineage) {
  return job_directory + "/" + storage::lineage_directory(lineage) + "/metrics.jsonl";
}

Curve::Curve(std::string job_directory, std::uint64_t lineage, std::function<double(std::int64_t step)> learning_rate)
    : job_directory_(std::move(job_directory)), lineage_(lineage), learning_rate_(std::move(learning_rate)) {}

void Curve::note(Generation generation, const trainer::StepReport& report) {
  const std::scoped_lock lock(mutex_);
  noted_[report.step] = {generation, report.loss, report.gradient_norm};
  if (noted_.size() > kMostNoted) noted_.erase(noted_.begin());
}

void Curve::note_validation(std::int64_t step, double loss) {
  const std::scoped_lock lock(mutex_);
  if (const auto noted = noted_.find(step); noted != noted_.end()) noted->second.validation_loss = loss;
}

void Curve::forget_up_to(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  noted_.erase(noted_.begin(), noted_.upper_bound(step));
}

void Curve::add_entries(const storage::LedgerSegment& segment, Windows& windows) {
  for (const storage::LedgerEntry& entry : segment.entries) {
    const auto [found, is_new] = windows.try_emplace(entry.window);
    Window& window = found->second;
    if (is_new) window.known_from = entry.first;
    window.generation = entry.generation;
    window.skipped = entry.skipped;
    window.losses.insert(window.losses.end(), entry.losses.begin(), entry.losses.end());
  }
}

// Nothing: the ledger's part that is at hand does not say enough.
std::optional<std::string> Curve::line(std::int64_t step, const Windows& windows) const {
  const auto found = windows.find(step - 1);
  if (found == windows.end()) return std::nullopt;
  const Window& window = found->second;
  const auto noted = noted_.find(step);
  // What was noted of a try that did not become history is about something else.
  const bool is_noted = noted != noted_.end() && noted->second.generation == window.generation;
  if (!is_noted && window.known_from > 0) return std::nullopt;
  const double loss = is_noted ? noted->second.loss : trainer::mean_of(window.losses);
  Json json = Json::object().set("generation", window.generation.value).set("step", step);
  json.set("loss", finite_or_null(loss)).set("learning_rate", learning_rate_(step));
  json.set("gradient_norm", is_noted ? finite_or_null(noted->second.gradient_norm) : Json(nullptr));
  json.set("skipped", window.skipped);
  const auto validation = is_noted ? noted->second.validation_loss : std::nullopt;
  if (validation) json.set("validation_loss", finite_or_null(*validation));
  return storage::to_text(json, 0) + "\n";
}

std::optional<std::string> Curve::lines(std::int64_t after, std::int64_t up_to, const Windows& windows) const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (std::int64_t step = after + 1; step <= up_to; ++step) {
    auto one = line(step, windows);
    if (!one) return std::nullopt;
    text += *std::move(one);
  }
  return text;
}

Status Curve::follow(const storage::CatalogPorts& ports, const storage::CatalogEntry& newest,
                     const storage::LedgerSegment* committed) {
  const auto lock = lock_patiently(ports.files.files, storage::lineage_directory(lineage_) + "/metrics.lock");
  if (!lock) return lock.error();
  const auto head = ports.head.read();
  if (!head) return head.error();
  if (*head != newest.head) return {};
  const std::int64_t steps = newest.manifest.version.value;
  const std::int64_t before = committed != nullptr ? committed->begin.value / newest.manifest.plan.window : steps;
  CurveFile file(curve_path(job_directory_, lineage_));
  const auto written = file.cut_after(before);
  if (!written) return written.error();
  Windows windows;
  if (committed != nullptr) add_entries(*committed, windows);
  auto text = lines(*written, steps, windows);
  if (!text) {
    const auto ledger = storage::Catalog(ports).ledger(newest);
    if (!ledger) return ledger.error();
    windows.clear();
    for (const storage::LedgerSegment& segment : *ledger) add_entries(segment, windows);
    // An imported model has no history.
    const std::int64_t first = windows.empty() ? steps : std::max(*written, windows.begin()->first);
    text = lines(first, steps, windows);
    if (!text) return Error{ErrorCode::kDataLoss, "the ledger has no word of an update", "everstep audit tells more"};
  }
  EVERSTEP_TRY(file.append(*text));
  forget_up_to(steps);
  return {};
}

}  // namespace everstep::launcher
