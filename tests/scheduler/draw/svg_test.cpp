#include "scheduler/draw/svg.h"

#include <cmath>

#include "tests/scheduler/draw/drawing_support.h"
#include "tests/scheduler/draw/xml_check.h"

namespace everstep::scheduler {
namespace {

TEST(Svg, FindsStepsThatPeopleRead) {
  EXPECT_DOUBLE_EQ(nice_step(1), 1);
  EXPECT_DOUBLE_EQ(nice_step(1.1), 2);
  EXPECT_DOUBLE_EQ(nice_step(30), 50);
  EXPECT_DOUBLE_EQ(nice_step(70), 100);
  EXPECT_DOUBLE_EQ(nice_step(0.003), 0.005);
}

TEST(Svg, EscapesMarkupAndReplacesWhatXmlCannotHold) {
  EXPECT_EQ(xml_escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;");
  EXPECT_EQ(xml_escaped("é × … \xF0\x9F\x99\x82"), "é × … \xF0\x9F\x99\x82");
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(xml_escaped(std::string_view("a\0b", 3)), "a" + replaced + "b");
  EXPECT_EQ(xml_escaped("\x1b[0m"), replaced + "[0m");
  EXPECT_EQ(xml_escaped("\xC3"), replaced);                                // cut off
  EXPECT_EQ(xml_escaped("\xC0\xAF"), replaced + replaced);                 // overlong
  EXPECT_EQ(xml_escaped("\xE0\x80\xAF"), replaced + replaced + replaced);  // overlong
  EXPECT_EQ(xml_escaped("\xED\xA0\x80"), replaced + replaced + replaced);  // a surrogate
  EXPECT_EQ(xml_escaped("\xEF\xBF\xBF"), replaced + replaced + replaced);  // no character
  EXPECT_EQ(xml_escaped("\xF5\x80\x80\x80"), replaced + replaced + replaced + replaced);
}

TEST(Svg, IsWellFormedWhateverTheTextsAre) {
  SvgPicture picture(100, 50, "<t & \"u\">", "\x01");
  picture.box({0, 0, 1, 2}, kInk, 1, "a < b");
  picture.frame({0, 0, 1, 2}, {kRule, 1, "4 3"});
  picture.polygon({{0, 0}, {1, 0}, {0, 1}}, kInk);
  picture.polyline({{0, 0}, {1, 0}}, {});
  picture.text({1, 2}, "</text>", {12, kInk, Anchor::kEnd, true});
  const std::string document = std::move(picture).take();
  EXPECT_EQ(xml_fault(document), "") << document;
  EXPECT_NE(document.find("role=\"img\" aria-labelledby=\"title description\""), std::string::npos);
}

TEST(XmlCheck, HasTeeth) {
  EXPECT_EQ(xml_fault("<a b=\"1\"><c/>x &amp; y</a>\n"), "");
  for (const char* broken : {"", "x", "<a>", "<a></b>", "<a b=1/>", "<a b=\"<\"/>", "<a b=\"1\" b=\"2\"/>", "<a>&</a>",
                             "<a/><b/>", "<a></a></a>", "<a>x</a>y", "<a"}) {
    EXPECT_NE(xml_fault(broken), "") << broken;
  }
}

double channel(std::string_view hex) {
  const double value = std::stoi(std::string(hex), nullptr, 16) / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(std::string_view colour) {
  return 0.2126 * channel(colour.substr(1, 2)) + 0.7152 * channel(colour.substr(3, 2)) +
         0.0722 * channel(colour.substr(5, 2));
}

double contrast(std::string_view a, std::string_view b) {
  const double brighter = std::max(luminance(a), luminance(b));
  const double darker = std::min(luminance(a), luminance(b));
  return (brighter + 0.05) / (darker + 0.05);
}

// 4.5 is what the web's accessibility guidelines ask for.
TEST(Svg, HasReadableTextOnEveryColour) {
  for (const Hue& colours : kHues) {
    EXPECT_GE(contrast(kInk, colours.tint), 4.5) << colours.tint;
    EXPECT_GE(contrast(kInk, colours.tone), 4.5) << colours.tone;
    EXPECT_GT(luminance(colours.tint), luminance(colours.tone));
  }
  EXPECT_GE(contrast(kMutedInk, kPaper), 4.5);
}

TEST(Svg, BreaksALegendIntoLinesThatFit) {
  const std::vector<Point> corners = legend_layout({"one", "two", "three", "four"}, 150, {});
  EXPECT_EQ(corners[0].x, 0);
  EXPECT_EQ(corners[0].y, 0);
  EXPECT_GT(corners[1].x, kLegendSample);
  EXPECT_EQ(corners[1].y, 0);
  EXPECT_EQ(corners[2].x, 0);
  EXPECT_EQ(corners[2].y, kLegendLine);
}

}  // namespace
}  // namespace everstep::scheduler
