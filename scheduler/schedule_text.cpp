#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/text.h"
#include "scheduler/schedule.h"

// everstep-schedule 1 kind=amdp depth=4 width=1 window=8 …
// worker 0: F0.0.0@0 F0.0.2@0 …
namespace everstep::scheduler {
namespace {

constexpr std::string_view kMagic = "everstep-schedule 1";

Error malformed(int line, const std::string& why) {
  return invalid_argument("schedule text, line " + std::to_string(line) + ": " + why);
}

template <typename Integer>
bool read_integer(std::string_view text, Integer& value) {
  const auto number = parse_number<Integer>(text);
  value = number.value_or(0);
  return number.has_value();
}

// Takes the text up to the next separator (or all of it) off the front.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view head = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), head.size() + 1));
  return head;
}

// One field of the request under its name in the text: a single table serves writing and reading.
struct Field {
  std::string_view name;
  std::function<std::string(const ScheduleRequest&)> write;  // empty text: left out
  std::function<bool(ScheduleRequest&, std::string_view)> read;
};

// Of kinds that came later: left out at its default, 0.
Field later_field(std::string_view name, int ScheduleRequest::*member) {
  return {name,
          [member](const ScheduleRequest& request) {
            return request.*member == 0 ? std::string() : std::to_string(request.*member);
          },
          [member](ScheduleRequest& request, std::string_view text) { return read_integer(text, request.*member); }};
}

template <typename Integer>
Field integer_field(std::string_view name, Integer ScheduleRequest::*member) {
  return {name, [member](const ScheduleRequest& request) { return std::to_string(request.*member); },
          [member](ScheduleRequest& request, std::string_view text) { return read_integer(text, request.*member); }};
}

const std::array<Field, 15>& fields() {
  static const std::array<Field, 15> table{{
      {"kind", [](const ScheduleRequest& request) { return std::string(to_string(request.kind)); },
       [](ScheduleRequest& request, std::string_view text) {
         const auto kind = parse_schedule_kind(text);
         if (kind) request.kind = *kind;
         return kind.ok();
       }},
      integer_field("depth", &ScheduleRequest::depth),
      integer_field("chunks", &ScheduleRequest::chunks_per_device),
      later_field("pipelines", &ScheduleRequest::pipelines),
      integer_field("width", &ScheduleRequest::width),
      integer_field("window", &ScheduleRequest::window),
      integer_field("windows", &ScheduleRequest::windows),
      integer_field("first-window", &ScheduleRequest::first_window),
      integer_field("first-minibatch", &ScheduleRequest::first_minibatch),
      {"stop-after-rounds",
       [](const ScheduleRequest& request) {
         return request.stop_after_rounds ? std::to_string(*request.stop_after_rounds) : std::string();
       },
       [](ScheduleRequest& request, std::string_view text) {
         return read_integer(text, request.stop_after_rounds.emplace());
       }},
      integer_field("preload", &ScheduleRequest::preload),
      later_field("lag", &ScheduleRequest::lag),
      later_field("provisional", &ScheduleRequest::provisional),
      integer_field("capture-every", &ScheduleRequest::capture_every_rounds),
      {"flush-after",
       [](const ScheduleRequest& request) {
         std::string list;
         for (const std::int64_t window : request.flush_after)
           list += (list.empty() ? "" : ",") + std::to_string(window);
         return list;
       },
       [](ScheduleRequest& request, std::string_view text) {
         while (!text.empty()) {
           if (!read_integer(take_until(text, ','), request.flush_after.emplace_back())) return false;
         }
         return true;
       }},
  }};
  return table;
}

Result<ScheduleRequest> parse_request(std::string_view line) {
  if (line.substr(0, kMagic.size()) != kMagic) return malformed(1, "does not start with '" + std::string(kMagic) + "'");
  line.remove_prefix(kMagic.size());
  if (!line.empty() && line.front() != ' ') return malformed(1, "expected a blank after '" + std::string(kMagic) + "'");
  ScheduleRequest request;
  std::set<std::string_view> seen;
  while (!line.empty()) {
    std::string_view pair = take_until(line, ' ');
    if (pair.empty()) continue;
    const std::string whole(pair);
    const std::string_view name = take_until(pair, '=');
    const auto field = std::find_if(fields().begin(), fields().end(), [&](const Field& f) { return f.name == name; });
    if (field == fields().end() || !field->read(request, pair)) return malformed(1, "cannot read '" + whole + "'");
    if (!seen.insert(field->name).second) return malformed(1, std::string(field->name) + " is given twice");
  }
  return request;
}

Status parse_worker_line(std::string_view line, int number, Schedule& schedule) {
  const std::string prefix = "worker " + std::to_string(schedule.workers.size()) + ":";
  if (line.substr(0, prefix.size()) != prefix) return malformed(number, "expected '" + prefix + " …'");
  line.remove_prefix(prefix.size());
  std::vector<Op>& ops = schedule.workers.emplace_back();
  while (!line.empty()) {
    const std::string_view token = take_until(line, ' ');
    if (token.empty()) continue;
    const auto op = parse_op(token);
    if (!op) return malformed(number, op.error().line());
    ops.push_back(*op);
  }
  return {};
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  std::string text(kMagic);
  for (const Field& field : fields()) {
    const std::string value = field.write(schedule.request);
    if (!value.empty()) text += " " + std::string(field.name) + "=" + value;
  }
  text += '\n';
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    text += "worker " + std::to_string(worker) + ":";
    for (const Op& op : schedule.workers[worker]) text += " " + to_string(op);
    text += '\n';
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text) {
  const auto request = parse_request(take_until(text, '\n'));
  if (!request) return request.error();
  auto slices = slices_of(*request);
  if (!slices) return malformed(1, slices.error().line());
  auto placement = placement_of(*request);
  if (!placement) return malformed(1, placement.error().line());
  Schedule schedule{*request, *placement, *slices, {}};
  for (int number = 2; !text.empty(); ++number) {
    EVERSTEP_TRY(parse_worker_line(take_until(text, '\n'), number, schedule));
  }
  if (std::ssize(schedule.workers) != std::int64_t{request->depth} * request->width) {
    return malformed(1, "expected " + std::to_string(std::int64_t{request->depth} * request->width) +
                            " workers, found " + std::to_string(schedule.workers.size()));
  }
  return schedule;
}

}  // namespace everstep::scheduler
