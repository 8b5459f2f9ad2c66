#include "scheduler/draw/timeline_svg.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "scheduler/draw/svg.h"
#include "scheduler/draw/timeline_layout.h"
#include "scheduler/schedule_summary.h"

namespace everstep::scheduler {
namespace {

constexpr double kMargin = TimelineLayout::kMargin;
constexpr double kHeader = TimelineLayout::kHeader;
constexpr double kRow = TimelineLayout::kRow;
constexpr TextStyle kLegendText{12, kInk, Anchor::kStart, false};
constexpr std::string_view kCaptureInk = "#b3261e";
constexpr std::string_view kProvisionalInk = "#6a1b9a";

// What has a colour of its own: a pipeline or, where one pipeline has several chunks per device, a chunk.
class Lanes {
 public:
  explicit Lanes(const Schedule& schedule)
      : schedule_(schedule),
        are_pipelines_(schedule.placement.pipelines() > 1),
        count_(are_pipelines_ ? schedule.placement.pipelines() : schedule.placement.stages() / schedule.depth()) {}

  int of(const Op& op) const { return are_pipelines_ ? schedule_.pipeline_of(op) : op.stage / schedule_.depth(); }
  int named() const { return std::min<int>(count_, kHues.size()); }
  std::string name(int lane) const {
    const bool splits = splits_backwards(schedule_.request.kind);
    std::string kinds = splits ? "forward, backward, gradients of weights" : "forward, backward";
    if (count_ == 1) return kinds;
    const std::string name = (are_pipelines_ ? "pipeline " : "chunk ") + std::to_string(lane);
    if (lane == 0) return name + ": " + kinds;
    return name + (count_ > named() && lane + 1 == named() ? "; then colours repeat" : "");
  }

 private:
  const Schedule& schedule_;
  bool are_pipelines_;
  int count_;
};

bool has_op(const Schedule& schedule, OpKind kind) {
  return std::any_of(schedule.workers.begin(), schedule.workers.end(), [&](const std::vector<Op>& ops) {
    return std::any_of(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
  });
}

// "0 3 4 7", shortened where a device holds many.
std::string stage_list(const std::vector<int>& stages) {
  constexpr std::size_t kMost = 6;
  std::string list;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages.size() > kMost && i == kMost - 2) {
      list += " …";
      i = stages.size() - 1;
    }
    list += (list.empty() ? "" : " ") + std::to_string(stages[i]);
  }
  return (stages.size() > 1 ? "stages " : "stage ") + list;
}

class TimelinePicture {
 public:
  TimelinePicture(const Schedule& schedule, const Timeline& timeline, const SvgDrawing& drawing)
      : schedule_(schedule),
        timeline_(timeline),
        drawing_(drawing),
        lanes_(schedule),
        layout_(schedule, timeline, drawing),
        legend_(legend_layout(legend_names(), layout_.width() - 2 * kMargin, kLegendText)),
        picture_(layout_.width(), layout_.axis_y() + kTimeAxisHeight + legend_.back().y + kLegendLine + kMargin / 2,
                 title(), summary()) {}

  std::string draw() && {
    picture_.text({kMargin, 34}, title(), {20, kInk, Anchor::kStart, true});
    picture_.text({kMargin, 56}, summary(), {13, kMutedInk});
    draw_time_axis(picture_,
                   {layout_.x_of(0), layout_.x_of(layout_.shown()), layout_.axis_y(), kHeader,
                    layout_.pixels_per_tick() * static_cast<double>(drawing_.ticks_per_unit), drawing_.time_unit});
    for (int worker = 0; worker < static_cast<int>(schedule_.workers.size()); ++worker) draw_worker(worker);
    draw_versions();
    draw_legend();
    return std::move(picture_).take();
  }

 private:
  std::string units(Tick ticks) const {
    return number_text(static_cast<double>(ticks) / static_cast<double>(drawing_.ticks_per_unit), 3);
  }

  std::string title() const {
    const ScheduleRequest& request = schedule_.request;
    return std::string(to_string(request.kind)) + ": D=" + std::to_string(request.depth) +
           " × P=" + std::to_string(schedule_.placement.pipelines()) + " × W=" + std::to_string(request.width) +
           ", window " + std::to_string(request.window);
  }

  std::string summary() const {
    const double busy = 100 * busy_share(timeline_);
    std::string text = "busy " + number_text(busy, 1) + " %, bubble " + number_text(100 - busy, 1) + " % of " +
                       units(timeline_.makespan) + " " + drawing_.time_unit;
    if (!drawing_.note.empty()) text += " · " + drawing_.note;
    if (layout_.shown() < timeline_.makespan) {
      text += " · cut after " + units(layout_.shown()) + " " + drawing_.time_unit;
    }
    return text;
  }

  void draw_worker(int worker) {
    const double y = layout_.y_of(worker);
    const int device = schedule_.device_of(worker);
    const TextStyle heading{12, kInk, Anchor::kStart, true};
    if (schedule_.request.width > 1 && device == 0) {
      picture_.text({kMargin, y - 7}, "group " + std::to_string(schedule_.group_of(worker)), heading);
    }
    picture_.text({kMargin, y + 12}, "device " + std::to_string(device), heading);
    picture_.text({kMargin, y + 25}, stage_list(schedule_.placement.stages_on(device)), {10, kMutedInk});
    picture_.frame({layout_.x_of(0), y, layout_.x_of(layout_.shown()) - layout_.x_of(0), kRow}, {kRule, 0.75});
    const std::vector<OpSpan>& spans = timeline_.spans[worker];
    const std::vector<bool> reads = provisional_reads(schedule_, worker);
    // Marks go on top of the boxes of their neighbours.
    for (const bool marks : {false, true}) {
      for (std::size_t i = 0; i < spans.size() && spans[i].begin <= layout_.shown(); ++i) {
        const Op& op = schedule_.workers[worker][i];
        if (is_compute(op) == marks) continue;
        marks ? draw_mark(op, spans[i], y) : draw_compute(op, spans[i], y, reads[i]);
      }
      if (marks) continue;
      for (const FloatingOp& weights : timeline_.weights[worker]) draw_compute(weights.op, weights.span, y, false);
    }
  }

  static Box inner_of(const Box& box) {
    constexpr double kEdge = 5;
    return {box.x, box.y + kEdge, box.width, box.height - 2 * kEdge};
  }

  static std::string_view name_of(OpKind kind) {
    if (kind == OpKind::kForward) return "forward";
    return kind == OpKind::kBackward ? "backward" : "gradients of weights";
  }

  std::string when(const OpSpan& span) const {
    return ", " + units(span.begin) + " to " + units(span.end) + " " + drawing_.time_unit;
  }

  void draw_compute(const Op& op, const OpSpan& span, double y, bool reads_provisional) {
    const double begin = layout_.x_of(span.begin);
    const double end = layout_.x_of(span.end);
    if (begin == end) return;
    const std::string number = std::to_string(op.round * schedule_.placement.round_size() + op.minibatch);
    const Hue& colours = hue(lanes_.of(op));
    // What is left of a split backward is dark at its upper and lower edge only.
    const bool weights = op.kind == OpKind::kBackwardWeights;
    const Box box{begin + 0.5, y, std::max(end - begin - 1, 0.5), kRow};
    if (weights) picture_.box(box, colours.tone, 2);
    picture_.box(weights ? inner_of(box) : box, op.kind == OpKind::kBackward ? colours.tone : colours.tint, 2,
                 std::string(name_of(op.kind)) + " of minibatch " + number + ", window " + std::to_string(op.window) +
                     ", round " + std::to_string(op.round) + ", stage " + std::to_string(op.stage) + ", pipeline " +
                     std::to_string(schedule_.pipeline_of(op)) + (reads_provisional ? ", on provisional weights" : "") +
                     when(span));
    if (reads_provisional) underline(box);
    // Equal boxes get equal letters: the size that fits the longest number of the window.
    const std::string longest = std::to_string(schedule_.request.window / schedule_.request.width);
    for (const double size : {12.0, 10.0, 8.5}) {
      if (text_width(longest, size) > end - begin - 2) continue;
      picture_.text({(begin + end) / 2, y + kRow / 2 + 0.36 * size}, number, {size, kInk, Anchor::kMiddle});
      return;
    }
  }

  void underline(const Box& box) {
    constexpr double kThick = 3;
    picture_.box({box.x, box.y + box.height - kThick, box.width, kThick}, kProvisionalInk, 1);
  }

  static std::string mark_name(OpKind kind) {
    if (kind == OpKind::kStartReduce) return "reduce of stage ";
    return kind == OpKind::kCapture ? "capture of stage " : "copy for the provisional step of stage ";
  }

  void draw_mark(const Op& op, const OpSpan& span, double y) {
    const double x = layout_.x_of(span.begin);
    const std::string window = " of window " + std::to_string(op.window);
    if (op.kind == OpKind::kUpdate) {
      const double width = std::max(layout_.x_of(span.end) - x, 3.0);
      picture_.box({x + 0.5, y - 2, width - 1, kRow + 4}, kInk, 1, "update" + window + when(span));
      return;
    }
    if (op.kind == OpKind::kTrialStep) {
      const double end = layout_.x_of(span.end);
      picture_.box({end - 1, y - 4, 2, kRow + 8}, kProvisionalInk, 0, "trial step" + window + when(span));
      return;
    }
    const bool reduce = op.kind == OpKind::kStartReduce;
    draw_flag({x, reduce ? y + kRow : y}, op.kind, mark_name(op.kind) + std::to_string(op.stage) + window + when(span));
  }

  // A triangle whose tip points into the row: from below for a reduce, from above for what only copies.
  void draw_flag(Point base, OpKind kind, const std::string& tooltip) {
    const double up = kind == OpKind::kStartReduce ? 1 : -1;
    const std::string_view copied = kind == OpKind::kCapture ? kCaptureInk : kProvisionalInk;
    picture_.polygon({{base.x, base.y - 5 * up}, {base.x - 3.5, base.y + 3 * up}, {base.x + 3.5, base.y + 3 * up}},
                     kind == OpKind::kStartReduce ? kInk : copied, tooltip);
  }

  // A dashed line where all workers have the same new weights at the same time.
  void draw_versions() {
    for (const WindowSlice& slice : schedule_.slices) {
      const std::vector<Tick> ends = update_ends(slice.window);
      const bool together = std::adjacent_find(ends.begin(), ends.end(), std::not_equal_to<>()) == ends.end();
      if (ends.empty() || !together || ends.front() > layout_.shown()) continue;
      const double x = layout_.x_of(ends.front());
      picture_.line({x, kHeader - 8}, {x, layout_.axis_y()}, {kInk, 1, "4 3"});
      const std::string name = "version " + std::to_string(slice.window + 1);
      const double middle = std::min(x, layout_.width() - kMargin / 2 - text_width(name, 11) / 2);
      picture_.text({middle, kHeader - 12}, name, {11, kMutedInk, Anchor::kMiddle});
    }
  }

  std::vector<Tick> update_ends(std::int64_t window) const {
    std::vector<Tick> ends;
    for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker) {
      const std::vector<Op>& ops = schedule_.workers[worker];
      const auto update = std::find(ops.begin(), ops.end(), update_of(window));
      if (update != ops.end()) ends.push_back(timeline_.spans[worker][update - ops.begin()].end);
    }
    return ends;
  }

  // Lanes first, then the others by name.
  std::vector<std::string> legend_names() const {
    std::vector<std::string> names;
    for (int lane = 0; lane < lanes_.named(); ++lane) names.push_back(lanes_.name(lane));
    names.insert(names.end(), {"idle", "update", "reduce starts"});
    if (has_op(schedule_, OpKind::kCapture)) names.emplace_back("capture");
    if (schedule_.request.provisional > 0) names.insert(names.end(), {kSumCopied, kStepTaken, kOnProvisional});
    return names;
  }

  void draw_legend() {
    const std::vector<std::string> names = legend_names();
    for (int i = 0; i < static_cast<int>(names.size()); ++i) {
      const Point corner{kMargin + legend_[i].x, layout_.axis_y() + kTimeAxisHeight + legend_[i].y};
      draw_sample(i, names[i], corner);
      picture_.text({corner.x + kLegendSample + 6, corner.y + 11}, names[i], kLegendText);
    }
  }

  void draw_sample(int index, const std::string& name, Point corner) {
    constexpr double kHeight = 14;
    constexpr double kHalf = kLegendSample / 2;
    if (index < lanes_.named()) {
      picture_.box({corner.x, corner.y, kHalf - 0.5, kHeight}, hue(index).tint, 2);
      picture_.box({corner.x + kHalf + 0.5, corner.y, kHalf - 0.5, kHeight}, hue(index).tone, 2);
      // The right half shows both halves of a split backward.
      if (splits_backwards(schedule_.request.kind)) {
        picture_.box({corner.x + 1.5 * kHalf, corner.y + 3, kHalf / 2, kHeight - 6}, hue(index).tint, 1);
      }
    } else if (name == "idle") {
      picture_.frame({corner.x, corner.y, kLegendSample, kHeight}, {kRule, 0.75});
    } else if (name == "update") {
      picture_.box({corner.x + kHalf - 3, corner.y - 1, 6, kHeight + 2}, kInk, 1);
    } else if (name == kStepTaken) {
      picture_.box({corner.x + kHalf - 1, corner.y - 2, 2, kHeight + 4}, kProvisionalInk, 0);
    } else if (name == kOnProvisional) {
      picture_.box({corner.x, corner.y, kLegendSample, kHeight}, hue(0).tint, 2);
      underline({corner.x, corner.y, kLegendSample, kHeight});
    } else {
      draw_flag({corner.x + kHalf, corner.y + kHeight / 2}, flag_named(name), name);
    }
  }

  static OpKind flag_named(std::string_view name) {
    if (name == "capture") return OpKind::kCapture;
    return name == kSumCopied ? OpKind::kProvisional : OpKind::kStartReduce;
  }

  static constexpr const char* kSumCopied = "sum copied for a provisional step";
  static constexpr const char* kStepTaken = "trial step";
  static constexpr const char* kOnProvisional = "on provisional weights";

  const Schedule& schedule_;
  const Timeline& timeline_;
  const SvgDrawing& drawing_;
  Lanes lanes_;
  TimelineLayout layout_;
  std::vector<Point> legend_;
  SvgPicture picture_;
};

}  // namespace

std::string draw_svg(const Schedule& schedule, const Timeline& timeline, const SvgDrawing& drawing) {
  EVERSTEP_CHECK(drawing.ticks_per_unit > 0 && drawing.width <= drawing.max_width, "a picture without a scale");
  return TimelinePicture(schedule, timeline, drawing).draw();
}

}  // namespace everstep::scheduler
