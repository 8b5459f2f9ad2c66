#include "launcher/doctor/recovery.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "launcher/cli/files.h"
#include "launcher/doctor/judgement.h"
#include "launcher/rehearse/chaos/run.h"

namespace everstep::launcher::doctor {
namespace {

constexpr int kMostWorkers = 3;
constexpr std::size_t kLongestTrainLog = std::size_t{1} << 24;

// All workers hold a stage, and any number of them has a plan. Where there is one device only the next worker needs it.
chaos::Schedule one_kill(int workers) {
  using std::chrono::milliseconds;
  chaos::Schedule schedule;
  schedule.workers = workers;
  schedule.job = chaos::JobKind::kSynchronous;
  schedule.deep = true;
  schedule.faults.push_back({milliseconds(100), {chaos::FaultKind::kKillWorker, 1, 0, milliseconds(0)}});
  if (workers == 1) schedule.faults.push_back({milliseconds(300), {chaos::FaultKind::kJoin, 0, 1, milliseconds(0)}});
  return schedule;
}

// "0.21s", as the first generation after the one before the kill tells it.
std::optional<std::string> first_stall(const std::filesystem::path& log) {
  const auto text = read_file(log.string(), kLongestTrainLog);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  int generations = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("event=generation ") == std::string::npos || ++generations < 2) continue;
    const std::size_t begin = line.find("stall=");
    if (begin == std::string::npos) return std::nullopt;
    std::istringstream rest(line.substr(begin + std::string_view("stall=").size()));
    std::string stall;
    rest >> stall;
    return stall;
  }
  return std::nullopt;
}

}  // namespace

Result<Check> lose_a_worker(const Place& place) {
  const auto directory = place.directory / "recovery";
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::ostringstream said;
  Streams streams{said, said};
  const int workers = std::min(place.workers(kMostWorkers), kMostWorkers);
  const auto report = run_schedule(one_kill(workers), {place.device_text()}, directory, streams);
  static_cast<void>(write_file((directory / "findings.log").string(), said.str()));
  if (!report) return report.error();
  // Without workers there is no `everstep train` that could tell of the next generation; LIVE has seen it.
  if (workers == 1) return judge_recovery(*report, "the next worker goes on");
  const auto stall = first_stall(directory / "train.log");
  return judge_recovery(*report, stall ? std::optional("trains again after " + *stall) : std::nullopt);
}

}  // namespace everstep::launcher::doctor
