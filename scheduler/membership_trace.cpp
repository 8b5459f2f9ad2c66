#include "scheduler/membership_trace.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/text.h"

namespace everstep::scheduler {
namespace {

constexpr std::int64_t kMaxTimeMs = std::int64_t{1} << 53;  // any double counts them exactly
constexpr std::int64_t kMaxStepBackMs = 120'000;
constexpr std::string_view kFormatHint = "a line is 'milliseconds,add|remove,node' or 'date, time, number of workers'";

using Fields = std::array<std::string_view, 3>;

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return "'" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "…'" : "'");
}

// Exactly three fields, none of them empty.
std::optional<Fields> split(std::string_view line) {
  Fields fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t comma = line.find(',');
    const bool last = i + 1 == fields.size();
    if (last != (comma == std::string_view::npos)) return std::nullopt;
    fields[i] = trimmed(line.substr(0, comma));
    if (fields[i].empty()) return std::nullopt;
    line.remove_prefix(last ? line.size() : comma + 1);
  }
  return fields;
}

// Numbers of the given lengths with the separator between them: "2021-12-11" for {4, 2, 2} and '-'.
std::optional<std::array<int, 3>> number_triple(std::string_view text, std::array<std::size_t, 3> lengths,
                                                char separator) {
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string_view part = text.substr(0, lengths[i]);
    const auto number = parse_number<std::int64_t>(part);
    if (!number || part.size() != lengths[i] || *number < 0) return std::nullopt;
    numbers[i] = static_cast<int>(*number);
    text.remove_prefix(lengths[i]);
    if (i + 1 == numbers.size()) break;
    if (text.empty() || text.front() != separator) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  return numbers;
}

std::optional<std::int64_t> milliseconds_of(std::string_view date, std::string_view time) {
  const auto numbers = number_triple(date, {4, 2, 2}, '-');
  const auto clock = number_triple(time, {2, 2, 2}, ':');
  if (!numbers || !clock) return std::nullopt;
  const auto [year, month, day] = *numbers;
  const auto [hour, minute, second] = *clock;
  const std::chrono::year_month_day calendar_day{std::chrono::year(year),
                                                 std::chrono::month(static_cast<unsigned>(month)),
                                                 std::chrono::day(static_cast<unsigned>(day))};
  if (!calendar_day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::chrono::sys_days midnight = calendar_day;
  return std::chrono::milliseconds(midnight.time_since_epoch() + std::chrono::hours(hour) +
                                   std::chrono::minutes(minute) + std::chrono::seconds(second))
      .count();
}

// Takes the lines one after the other. An error has no line number yet.
class TraceReader {
 public:
  Status take(const Fields& fields) {
    // A '-' inside the first field makes it a date; in front it is a sign.
    if (!format_) format_ = fields[0].find('-', 1) == std::string_view::npos ? Format::kChanges : Format::kCounts;
    return *format_ == Format::kChanges ? take_change(fields) : take_count(fields);
  }

  Result<std::vector<NodeChange>> take_changes() && {
    if (format_ == Format::kCounts) {
      return invalid_argument("the trace counts workers and does not say which of them come and go",
                              "a line is 'milliseconds,add|remove,node'");
    }
    return std::move(changes_);
  }

  Result<MembershipTrace> finish() && {
    if (points_.empty()) return invalid_argument("the trace is empty", std::string(kFormatHint));
    MembershipTrace trace;
    const std::int64_t start = points_.front().time_ms;
    trace.duration_ms = points_.back().time_ms - start;
    if (trace.duration_ms == 0) return invalid_argument("the trace covers no time: all its lines are at one instant");
    points_.pop_back();
    for (const MembershipPoint& point : points_) {
      // Probes write a count also when nothing changed.
      const bool same = !trace.points.empty() && trace.points.back().workers == point.workers;
      if (*format_ == Format::kCounts && same) continue;
      trace.points.push_back({point.time_ms - start, point.workers});
    }
    trace.overruled_lines = overruled_lines_;
    return trace;
  }

 private:
  enum class Format { kChanges, kCounts };

  Status take_change(const Fields& fields) {
    const auto time = parse_number<std::int64_t>(fields[0]);
    if (!time) return invalid_argument("the time " + quoted(fields[0]) + " is not a whole number of milliseconds");
    if (*time < 0) return invalid_argument("the time " + quoted(fields[0]) + " is negative");
    if (*time > kMaxTimeMs) return invalid_argument("the time " + quoted(fields[0]) + " is too large");
    if (!points_.empty() && *time < points_.back().time_ms) {
      return invalid_argument("the time " + quoted(fields[0]) + " is before that of the line above");
    }
    changes_.push_back({*time, fields[1] == "add", std::string(fields[2])});
    if (fields[1] == "add") {
      if (!nodes_.emplace(fields[2]).second) return invalid_argument("node " + quoted(fields[2]) + " is already there");
    } else if (fields[1] == "remove") {
      const auto node = nodes_.find(fields[2]);
      if (node == nodes_.end()) return invalid_argument("node " + quoted(fields[2]) + " is not there");
      nodes_.erase(node);
    } else {
      return invalid_argument("unknown action " + quoted(fields[1]), "it is add or remove");
    }
    return put({*time, static_cast<int>(nodes_.size())});
  }

  Status take_count(const Fields& fields) {
    const auto time = milliseconds_of(fields[0], fields[1]);
    if (!time) {
      return invalid_argument(
          "there is no date and time " + quoted(std::string(fields[0]) + ", " + std::string(fields[1])),
          "for instance 2021-12-11, 11:11:30");
    }
    const auto count = parse_number<std::int64_t>(fields[2]);
    if (!count || *count < 0)
      return invalid_argument("the number of workers " + quoted(fields[2]) + " is no whole number");
    if (*count > kMaxTraceWorkers)
      return invalid_argument("the number of workers " + quoted(fields[2]) + " is too large");
    if (!points_.empty() && *time < points_.back().time_ms) {
      if (*time < points_.back().time_ms - kMaxStepBackMs || *time < points_.front().time_ms) {
        return invalid_argument("the time " + quoted(fields[1]) + " is before that of the line above");
      }
      const auto first =
          std::upper_bound(points_.begin(), points_.end(), *time,
                           [](std::int64_t instant, const MembershipPoint& point) { return instant < point.time_ms; });
      overruled_lines_ += static_cast<int>(points_.end() - first);
      points_.erase(first, points_.end());
    }
    return put({*time, static_cast<int>(*count)});
  }

  Status put(const MembershipPoint& point) {
    if (points_.empty() || points_.back().time_ms != point.time_ms) {
      points_.push_back(point);
    } else {
      points_.back() = point;
    }
    return {};
  }

  std::optional<Format> format_;
  std::set<std::string, std::less<>> nodes_;
  std::vector<MembershipPoint> points_;
  std::vector<NodeChange> changes_;
  int overruled_lines_ = 0;
};

Result<TraceReader> read_lines(std::string_view text) {
  if (text.size() > kMaxTraceBytes) {
    return invalid_argument("the trace has " + std::to_string(text.size()) + " bytes, more than " +
                            std::to_string(kMaxTraceBytes));
  }
  TraceReader reader;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view raw = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), raw.size() + 1));
    const std::string_view line = trimmed(raw);
    if (line.empty() || line.front() == '#') continue;
    const auto fields = split(line);
    const Status taken =
        fields ? reader.take(*fields) : invalid_argument("cannot read " + quoted(line), std::string(kFormatHint));
    if (!taken)
      return invalid_argument("line " + std::to_string(number) + ": " + taken.error().message, taken.error().hint);
  }
  return reader;
}

}  // namespace

double MembershipTrace::mean_workers() const {
  double worker_ms = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int64_t end = i + 1 < points.size() ? points[i + 1].time_ms : duration_ms;
    worker_ms += static_cast<double>(end - points[i].time_ms) * points[i].workers;
  }
  return worker_ms / static_cast<double>(duration_ms);
}

int MembershipTrace::max_workers() const {
  int most = 0;
  for (const MembershipPoint& point : points) most = std::max(most, point.workers);
  return most;
}

Result<MembershipTrace> parse_membership_trace(std::string_view text) {
  auto reader = read_lines(text);
  if (!reader) return reader.error();
  return std::move(*reader).finish();
}

Result<std::vector<NodeChange>> parse_node_changes(std::string_view text) {
  auto reader = read_lines(text);
  if (!reader) return reader.error();
  // What is no trace as a whole is none here either.
  auto changes = TraceReader(*reader).take_changes();
  if (!changes) return changes.error();
  const auto trace = std::move(*reader).finish();
  if (!trace) return trace.error();
  return changes;
}

}  // namespace everstep::scheduler
