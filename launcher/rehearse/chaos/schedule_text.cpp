#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "launcher/rehearse/chaos/schedule.h"

namespace everstep::launcher::chaos {
namespace {

constexpr std::pair<JobKind, std::string_view> kJobKindNames[] = {
    {JobKind::kClockwork, "clockwork"}, {JobKind::kAmdp, "amdp"}, {JobKind::kSynchronous, "synchronous"}};
constexpr int kMostChaosWorkers = 16;
constexpr std::size_t kMostFaultsOfAFile = 1000;

Error wrong_line(std::string_view text, const std::string& why) {
  return invalid_argument("'" + std::string(text) + "': " + why);
}

Status read_choice(std::string_view value, std::string_view yes, std::string_view no, bool& is_yes) {
  if (value != yes && value != no) {
    return wrong_line(value, "expected " + std::string(yes) + " or " + std::string(no));
  }
  is_yes = value == yes;
  return {};
}

Status read_kind(std::string_view value, JobKind& kind) {
  for (const auto& [known, name] : kJobKindNames) {
    if (name != value) continue;
    kind = known;
    return {};
  }
  return wrong_line(value, "expected clockwork, amdp or synchronous");
}

Status read_job_line(std::string_view name, std::string_view value, Schedule& schedule) {
  if (name == "kind") return read_kind(value, schedule.job);
  if (name == "shape") return read_choice(value, "deep", "fastest", schedule.deep);
  const auto number = parse_number<std::uint64_t>(value);
  if (!number) return wrong_line(value, "expected a number");
  if (name == "seed") {
    schedule.seed = *number;
  } else if (name == "workers") {
    if (*number < 1 || *number > kMostChaosWorkers)
      return wrong_line(value, "expected workers" + range_text(1, kMostChaosWorkers));
    schedule.workers = static_cast<int>(*number);
  } else {
    if (*number != 1 && *number != 3) return wrong_line(value, "expected 1 or 3 etcd servers");
    schedule.etcd_servers = static_cast<int>(*number);
  }
  return {};
}

Status read_line(std::string_view line, Schedule& schedule) {
  static const std::set<std::string_view> job_lines{"seed", "workers", "etcd-servers", "kind", "shape"};
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view first = line.substr(0, space);
  const std::string_view rest = trimmed(line.substr(space));
  if (job_lines.contains(first)) return read_job_line(first, rest, schedule);
  const auto at = parse_seconds(first);
  if (!at) return at.error();
  const auto fault = parse_fault(rest);
  if (!fault) return fault.error();
  if (!schedule.faults.empty() && *at < schedule.faults.back().at) return wrong_line(first, "is before the line above");
  if (schedule.faults.size() == kMostFaultsOfAFile) return wrong_line(first, "is one fault too many");
  schedule.faults.push_back({*at, *fault});
  return {};
}

}  // namespace

std::string_view to_string(JobKind kind) {
  return std::ranges::find(kJobKindNames, kind, &std::pair<JobKind, std::string_view>::first)->second;
}

std::string to_text(const Schedule& schedule) {
  std::string text = "# everstep chaos: seconds after the first checkpoint, and what happens then\n";
  text += "seed " + std::to_string(schedule.seed) + "\n";
  text += "workers " + std::to_string(schedule.workers) + "\n";
  text += "etcd-servers " + std::to_string(schedule.etcd_servers) + "\n";
  text.append("kind ").append(to_string(schedule.job)).append("\n");
  text += std::string("shape ") + (schedule.deep ? "deep" : "fastest") + "\n";
  for (const TimedFault& one : schedule.faults) {
    text += seconds_text(one.at);
    text += " " + to_text(one.fault) + "\n";
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text) {
  Schedule schedule;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text = text.substr(std::min(end + 1, text.size()));
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (Status read = read_line(line, schedule); !read) {
      Error error = read.error();
      error.message = "line " + std::to_string(number) + ": " + error.message;
      return error;
    }
  }
  return schedule;
}

}  // namespace everstep::launcher::chaos
