#include "scheduler/draw/svg.h"

#include <cmath>

#include "base/check.h"
#include "base/text.h"

namespace everstep::scheduler {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string coordinate(double value) { return number_text(value, 2); }

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string attribute(std::string_view name, double value) { return attribute(name, coordinate(value)); }

std::string point_list(const std::vector<Point>& points) {
  std::string list;
  for (const Point& point : points) {
    list += (list.empty() ? "" : " ") + coordinate(point.x) + "," + coordinate(point.y);
  }
  return list;
}

std::string extent(const Box& box) {
  return attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
         attribute("height", box.height);
}

std::string stroke_attributes(const Stroke& stroke) {
  std::string text = attribute("stroke", stroke.ink) + attribute("stroke-width", stroke.width);
  if (!stroke.dashes.empty()) text += attribute("stroke-dasharray", stroke.dashes);
  return text;
}

// How many bytes of the front are one character that XML may hold; 0 if none is.
std::size_t valid_prefix(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 || lead == '\t' || lead == '\n' ? 1 : 0;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  char32_t code = lead & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF ? 0 : length;
}

std::string_view anchor_name(Anchor anchor) {
  constexpr std::array<std::string_view, 3> kNames{"start", "middle", "end"};
  return kNames[static_cast<std::size_t>(anchor)];
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = valid_prefix(text);
    switch (text.front()) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&apos;";
        break;
      default:
        escaped += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

double text_width(std::string_view text, double size) {
  std::size_t characters = 0;
  for (const char c : text) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return 0.58 * size * static_cast<double>(characters);
}

SvgPicture::SvgPicture(double width, double height, std::string_view title, std::string_view description) {
  document_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) + attribute("height", height) +
              attribute("viewBox", "0 0 " + coordinate(width) + " " + coordinate(height)) +
              " role=\"img\" aria-labelledby=\"title description\"" +
              " font-family=\"Inter, Helvetica, Arial, sans-serif\">\n" + "<title id=\"title\">" + xml_escaped(title) +
              "</title>\n<desc id=\"description\">" + xml_escaped(description) + "</desc>\n";
  box({0, 0, width, height}, kPaper);
}

void SvgPicture::element(std::string_view start, std::string_view name, std::string_view tooltip) {
  document_ += start;
  if (tooltip.empty()) {
    document_ += "/>\n";
    return;
  }
  document_ += "><title>" + xml_escaped(tooltip) + "</title></" + std::string(name) + ">\n";
}

void SvgPicture::box(const Box& box, std::string_view fill, double corner, std::string_view tooltip) {
  std::string start = "<rect" + extent(box);
  if (corner > 0) start += attribute("rx", corner);
  element(start + attribute("fill", fill), "rect", tooltip);
}

void SvgPicture::frame(const Box& box, const Stroke& stroke) {
  element("<rect" + extent(box) + attribute("fill", "none") + stroke_attributes(stroke), "rect", {});
}

void SvgPicture::polygon(const std::vector<Point>& corners, std::string_view fill, std::string_view tooltip) {
  element("<polygon" + attribute("points", point_list(corners)) + attribute("fill", fill), "polygon", tooltip);
}

void SvgPicture::line(Point from, Point to, const Stroke& stroke) {
  element("<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) + attribute("y2", to.y) +
              stroke_attributes(stroke),
          "line", {});
}

void SvgPicture::polyline(const std::vector<Point>& points, const Stroke& stroke) {
  element("<polyline" + attribute("points", point_list(points)) + attribute("fill", "none") +
              attribute("stroke-linejoin", "round") + stroke_attributes(stroke),
          "polyline", {});
}

void SvgPicture::text(Point at, std::string_view text, const TextStyle& style) {
  document_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + attribute("font-size", style.size) +
               attribute("fill", style.ink);
  if (style.anchor != Anchor::kStart) document_ += attribute("text-anchor", anchor_name(style.anchor));
  if (style.bold) document_ += attribute("font-weight", "600");
  document_ += ">" + xml_escaped(text) + "</text>\n";
}

std::string SvgPicture::take() && { return std::move(document_) + "</svg>\n"; }

void draw_time_axis(SvgPicture& picture, const TimeAxis& axis) {
  const double step = nice_step(56 / axis.pixels_per_unit);
  picture.line({axis.begin, axis.y}, {axis.end, axis.y}, {kMutedInk});
  for (int i = 0; axis.begin + i * step * axis.pixels_per_unit <= axis.end + 0.5; ++i) {
    const double x = axis.begin + i * step * axis.pixels_per_unit;
    picture.line({x, axis.grid_top}, {x, axis.y + 5}, {kRule});
    picture.text({x, axis.y + 18}, number_text(i * step, 3), {11, kMutedInk, Anchor::kMiddle});
  }
  picture.text({(axis.begin + axis.end) / 2, axis.y + 36}, "time in " + std::string(axis.unit),
               {12, kMutedInk, Anchor::kMiddle});
}

std::vector<Point> legend_layout(const std::vector<std::string>& names, double width, const TextStyle& style) {
  constexpr double kLegendGap = 18;
  std::vector<Point> corners;
  Point next;
  for (const std::string& name : names) {
    const double entry = kLegendSample + 6 + text_width(name, style.size);
    if (next.x > 0 && next.x + entry > width) next = {0, next.y + kLegendLine};
    corners.push_back(next);
    next.x += entry + kLegendGap;
  }
  return corners;
}

double nice_step(double least) {
  EVERSTEP_CHECK(std::isfinite(least) && least > 0, "a step that is not positive");
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

}  // namespace everstep::scheduler
