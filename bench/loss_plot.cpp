#include "bench/loss_plot.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "scheduler/draw/svg.h"

namespace everstep::bench {
namespace {

using scheduler::Anchor;
using scheduler::Point;
using scheduler::Stroke;
using scheduler::SvgPicture;
using scheduler::TextStyle;

constexpr double kWidth = 960;
constexpr double kMargin = 24;
constexpr double kLabels = 56;
constexpr double kHeader = 96;
constexpr double kGap = 46;
constexpr double kWidestRatio = 0.04;  // what the lower panel shows around 1
constexpr std::string_view kTitle = "Loss on the example corpus: AMDP and synchronous training";
constexpr TextStyle kLegendText{12, scheduler::kInk, Anchor::kStart, false};

// A vertical scale from `low` at the bottom to `high` at the top.
struct Panel {
  double top;
  double height;
  double low;
  double high;

  double bottom() const { return top + height; }
  double y_of(double value) const { return bottom() - height * (std::clamp(value, low, high) - low) / (high - low); }
};

// A trailing mean, so that curves can be told apart.
std::vector<double> smoothed(const std::vector<double>& values) {
  constexpr std::size_t kSpan = 10;
  std::vector<double> means;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i + 1 > kSpan ? i + 1 - kSpan : 0;
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    means.push_back(std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin));
  }
  return means;
}

class LossPicture {
 public:
  LossPicture(const std::vector<LossPair>& pairs, const std::string& note)
      : pairs_(pairs),
        updates_(pairs.front().amdp.size()),
        losses_{kHeader, 300, 0, std::ceil(highest_loss())},
        ratios_{losses_.bottom() + kGap, 120, 1 - kWidestRatio, 1 + kWidestRatio},
        legend_(scheduler::legend_layout(legend_names(), kWidth - 2 * kMargin, kLegendText)),
        picture_(kWidth, ratios_.bottom() + scheduler::kTimeAxisHeight + legend_.back().y + 2 * kMargin, kTitle, note) {
    picture_.text({kMargin, 34}, kTitle, {20, scheduler::kInk, Anchor::kStart, true});
    picture_.text({kMargin, 56}, note, {13, scheduler::kMutedInk});
  }

  std::string draw() && {
    const double pixels_per_update = (x_of(updates_) - x_of(0)) / static_cast<double>(updates_);
    draw_time_axis(picture_, {x_of(0), x_of(updates_), ratios_.bottom(), losses_.top, pixels_per_update, "updates"});
    draw_scale(losses_, "loss, mean of 10 updates");
    draw_scale(ratios_, "AMDP / synchronous");
    for (std::size_t i = 0; i < pairs_.size(); ++i) draw_pair(static_cast<int>(i));
    draw_legend();
    return std::move(picture_).take();
  }

 private:
  double highest_loss() const {
    double highest = 0;
    for (const LossPair& pair : pairs_) highest = std::max(highest, pair.synchronous.front());
    return highest;
  }

  double x_of(std::size_t update) const {
    const double left = kMargin + kLabels;
    return left + (kWidth - kMargin - left) * static_cast<double>(update) / static_cast<double>(updates_);
  }

  void draw_scale(const Panel& panel, std::string_view name) {
    const double step = scheduler::nice_step((panel.high - panel.low) / 6);
    picture_.text({kMargin, panel.top - 12}, name, {12, scheduler::kInk, Anchor::kStart, true});
    for (int i = 0; panel.low + i * step <= panel.high + 1e-9; ++i) {
      const double y = panel.y_of(panel.low + i * step);
      picture_.line({x_of(0), y}, {x_of(updates_), y}, {scheduler::kRule});
      picture_.text({x_of(0) - 8, y + 4}, number_text(panel.low + i * step, 3),
                    {11, scheduler::kMutedInk, Anchor::kEnd});
    }
  }

  void draw_curve(const Panel& panel, const std::vector<double>& values, const Stroke& stroke) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < values.size(); ++i) points.push_back({x_of(i + 1), panel.y_of(values[i])});
    picture_.polyline(points, stroke);
  }

  // Synchronous in a broad light line, AMDP in a thin dark one on it.
  static Stroke synchronous_stroke(int pair) { return {scheduler::hue(pair).tint, 6}; }
  static Stroke amdp_stroke(int pair) { return {scheduler::hue(pair).tone, 1.5}; }

  void draw_pair(int index) {
    const std::vector<double> synchronous = smoothed(pairs_[index].synchronous);
    const std::vector<double> amdp = smoothed(pairs_[index].amdp);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < amdp.size(); ++i) ratios.push_back(amdp[i] / synchronous[i]);
    draw_curve(losses_, synchronous, synchronous_stroke(index));
    draw_curve(losses_, amdp, amdp_stroke(index));
    draw_curve(ratios_, ratios, amdp_stroke(index));
  }

  std::vector<std::string> legend_names() const {
    std::vector<std::string> names;
    for (const LossPair& pair : pairs_) {
      const std::string seed = ", seed " + std::to_string(pair.seed) + ": ";
      names.push_back("synchronous" + seed + fixed_text(final_loss(pair.synchronous), 4));
      names.push_back("AMDP" + seed + fixed_text(final_loss(pair.amdp), 4));
    }
    return names;
  }

  void draw_legend() {
    const std::vector<std::string> names = legend_names();
    for (int i = 0; i < static_cast<int>(names.size()); ++i) {
      const Point corner{kMargin + legend_[i].x, ratios_.bottom() + scheduler::kTimeAxisHeight + legend_[i].y};
      picture_.line({corner.x, corner.y + 7}, {corner.x + scheduler::kLegendSample, corner.y + 7},
                    i % 2 == 0 ? synchronous_stroke(i / 2) : amdp_stroke(i / 2));
      picture_.text({corner.x + scheduler::kLegendSample + 6, corner.y + 11}, names[i], kLegendText);
    }
  }

  const std::vector<LossPair>& pairs_;
  std::size_t updates_;
  Panel losses_;
  Panel ratios_;
  std::vector<Point> legend_;
  SvgPicture picture_;
};

}  // namespace

double final_loss(const std::vector<double>& losses) {
  const auto count = std::min<std::ptrdiff_t>(kFinalUpdates, std::ssize(losses));
  return std::accumulate(losses.end() - count, losses.end(), 0.0) / static_cast<double>(count);
}

std::string draw_losses(const std::vector<LossPair>& pairs, const std::string& note) {
  return LossPicture(pairs, note).draw();
}

}  // namespace everstep::bench
