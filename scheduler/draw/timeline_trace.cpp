#include "scheduler/draw/timeline_trace.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

// Every text in the trace is made here of letters, digits and blanks, so nothing needs escaping.
namespace everstep::scheduler {
namespace {

// A JSON object under construction.
class Members {
 public:
  Members& add(std::string_view name, std::string_view text) { return raw(name, "\"" + std::string(text) + "\""); }
  Members& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
  Members& add(std::string_view name, std::int64_t number) { return raw(name, std::to_string(number)); }
  Members& add(std::string_view name, double number) { return raw(name, number_text(number, 3)); }
  Members& add(std::string_view name, const Members& object) { return raw(name, object.text()); }

  std::string text() const { return "{" + members_ + "}"; }

 private:
  Members& raw(std::string_view name, const std::string& value) {
    members_ += (members_.empty() ? "\"" : ",\"") + std::string(name) + "\":" + value;
    return *this;
  }

  std::string members_;
};

class TraceText {
 public:
  TraceText(const Schedule& schedule, double microseconds_per_tick)
      : schedule_(schedule), microseconds_per_tick_(microseconds_per_tick) {}

  // Names the rows, which are sorted by their numbers and not by their names.
  void add_names() {
    for (int worker = 0; worker < static_cast<int>(schedule_.workers.size()); ++worker) {
      const std::int64_t device = schedule_.device_of(worker);
      if (device == 0) add_name("process_name", worker, "group " + std::to_string(schedule_.group_of(worker)));
      add_name("thread_name", worker, "device " + std::to_string(device));
      add(event("thread_sort_index", "M", worker).add("args", Members().add("sort_index", device)));
    }
  }

  void add_op(int worker, const Op& op, const OpSpan& span) {
    constexpr std::array<std::string_view, 8> kCategories{"forward", "backward", "reduce",      "capture",
                                                          "update",  "weights",  "provisional", "trial step"};
    constexpr std::string_view kOpLetters = "FBRCUWPT";
    const auto kind = static_cast<std::size_t>(op.kind);
    const bool slice = is_of_minibatch(op) || op.kind == OpKind::kUpdate;
    std::string name(1, kOpLetters[kind]);
    if (is_of_minibatch(op)) name += std::to_string(op.round * schedule_.placement.round_size() + op.minibatch);
    Members members = event(name, slice ? "X" : "i", worker);
    members.add("cat", kCategories[kind]).add("ts", microseconds(span.begin));
    if (slice) members.add("dur", microseconds(span.end - span.begin));
    if (!slice) members.add("s", "t");
    add(members.add("args", arguments(op)));
  }

  std::string take() && { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + std::move(events_) + "\n]}\n"; }

 private:
  double microseconds(Tick ticks) const { return static_cast<double>(ticks) * microseconds_per_tick_; }

  Members event(std::string_view name, const char* phase, int worker) const {
    return Members()
        .add("name", name)
        .add("ph", phase)
        .add("pid", std::int64_t{schedule_.group_of(worker)})
        .add("tid", std::int64_t{schedule_.device_of(worker)});
  }

  void add_name(std::string_view what, int worker, std::string_view name) {
    add(event(what, "M", worker).add("args", Members().add("name", name)));
  }

  Members arguments(const Op& op) const {
    Members members;
    members.add("window", op.window);
    const bool of_window = op.kind == OpKind::kStartReduce || op.kind == OpKind::kUpdate;
    if (!of_window) members.add("round", std::int64_t{op.round});
    if (is_of_minibatch(op)) {
      members.add("minibatch", std::int64_t{op.minibatch});
      members.add("pipeline", std::int64_t{schedule_.pipeline_of(op)});
    }
    if (op.kind != OpKind::kUpdate && op.kind != OpKind::kTrialStep) members.add("stage", std::int64_t{op.stage});
    return members;
  }

  void add(const Members& event) { events_ += (events_.empty() ? "" : ",\n") + event.text(); }

  const Schedule& schedule_;
  double microseconds_per_tick_;
  std::string events_;
};

}  // namespace

std::string draw_trace(const Schedule& schedule, const Timeline& timeline, double microseconds_per_tick) {
  TraceText text(schedule, microseconds_per_tick);
  text.add_names();
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      text.add_op(worker, schedule.workers[worker][i], timeline.spans[worker][i]);
    }
    for (const FloatingOp& weights : timeline.weights[worker]) text.add_op(worker, weights.op, weights.span);
  }
  return std::move(text).take();
}

}  // namespace everstep::scheduler
