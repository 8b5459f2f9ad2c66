#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What all pictures share: one way to write SVG, one set of colours. Text is escaped here and nowhere else.
namespace everstep::scheduler {

// A hue in a tint for areas and a tone for what stands out. Dark text is readable on both, and neighbours in the list
// are told apart with any common colour blindness (after Okabe and Ito).
struct Hue {
  std::string_view tint;
  std::string_view tone;
};

inline constexpr std::array<Hue, 8> kHues{{{"#a9cdf0", "#4f94d6"},
                                           {"#fbdca3", "#eba21b"},
                                           {"#aee3d0", "#2fae88"},
                                           {"#f3cbe2", "#cf7fae"},
                                           {"#d4eefc", "#86c8f0"},
                                           {"#f8c3a6", "#e2773a"},
                                           {"#f6f0a8", "#e3d63c"},
                                           {"#d0d5db", "#98a2ae"}}};

inline constexpr std::string_view kInk = "#1b2430";
inline constexpr std::string_view kMutedInk = "#566170";
inline constexpr std::string_view kRule = "#cdd4dc";
inline constexpr std::string_view kPaper = "#ffffff";

// Colours repeat after the last hue.
constexpr const Hue& hue(int index) { return kHues[static_cast<std::size_t>(index) % kHues.size()]; }

// The text as XML content or attribute: markup is escaped, and what XML cannot hold (control characters, broken UTF-8)
// becomes U+FFFD.
std::string xml_escaped(std::string_view text);

// About how wide a text is: fonts differ, so leave some room.
double text_width(std::string_view text, double size);

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 12;
  std::string_view ink = kInk;
  Anchor anchor = Anchor::kStart;
  bool bold = false;
};

struct Stroke {
  std::string_view ink = kInk;
  double width = 1;
  std::string_view dashes{};  // for instance "4 3"
};

// Collects the shapes of one picture, later ones on top. Coordinates are in pixels from the upper left corner.
class SvgPicture {
 public:
  // `title` and `description` are what a screen reader says.
  SvgPicture(double width, double height, std::string_view title, std::string_view description);

  // The tooltip shows when the pointer rests on the shape; empty for none.
  void box(const Box& box, std::string_view fill, double corner = 0, std::string_view tooltip = {});
  void frame(const Box& box, const Stroke& stroke);
  void polygon(const std::vector<Point>& corners, std::string_view fill, std::string_view tooltip = {});
  void line(Point from, Point to, const Stroke& stroke);
  void polyline(const std::vector<Point>& points, const Stroke& stroke);
  // `at` is on the base line.
  void text(Point at, std::string_view text, const TextStyle& style = {});

  // The whole document, which ends with a newline.
  std::string take() &&;

 private:
  void element(std::string_view start, std::string_view name, std::string_view tooltip);

  std::string document_;
};

// A horizontal axis under a plot, with grid lines up to `grid_top`.
struct TimeAxis {
  double begin = 0;
  double end = 0;
  double y = 0;
  double grid_top = 0;
  double pixels_per_unit = 1;
  std::string_view unit;
};

inline constexpr double kTimeAxisHeight = 52;

void draw_time_axis(SvgPicture& picture, const TimeAxis& axis);

// One entry of a legend: a sample that is `kLegendSample` wide, drawn by its index, and a name.
inline constexpr double kLegendSample = 28;
inline constexpr double kLegendLine = 22;

// Breaks entries into lines that fit the width: for each entry its upper left corner, relative to the legend's.
std::vector<Point> legend_layout(const std::vector<std::string>& names, double width, const TextStyle& style);

// A distance between marks of an axis that people read well: the smallest number of the form 1, 2 or 5 times a power
// of ten that is at least `least`, which must be positive and finite.
double nice_step(double least);

}  // namespace everstep::scheduler
