#include "storage/json/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep::storage {
namespace {

std::string round_trip(std::string_view text) {
  const auto json = parse_json(text);
  return json ? to_text(*json, 0) : json.error().line();
}

// Bytes of any kind would mostly be invalid UTF-8: build strings from code points instead.
rc::Gen<std::string> any_utf8() {
  const auto piece = rc::gen::element<std::string>("a", "\"", "\\", "/", "\n", "\x01", "\x7f", "ä", "€", "😀", "\u2028");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const std::vector<std::string>& pieces) {
    std::string text;
    for (const std::string& next : pieces) text += next;
    return text;
  });
}

rc::Gen<Json> any_scalar() {
  const auto finite = [](double value) { return std::isfinite(value); };
  return rc::gen::oneOf(
      rc::gen::just(Json()), rc::gen::map(rc::gen::arbitrary<bool>(), [](bool value) { return Json(value); }),
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t value) { return Json(value); }),
      rc::gen::map(rc::gen::suchThat(rc::gen::arbitrary<double>(), finite), [](double value) { return Json(value); }),
      rc::gen::map(any_utf8(), [](const std::string& value) { return Json(value); }));
}

rc::Gen<Json> any_json(int depth) {
  if (depth == 0) return any_scalar();
  const auto elements = rc::gen::scale(0.3, rc::gen::container<std::vector<Json>>(any_json(depth - 1)));
  const auto names = rc::gen::scale(0.3, rc::gen::container<std::vector<std::string>>(any_utf8()));
  return rc::gen::oneOf(any_scalar(),
                        rc::gen::map(elements, [](const std::vector<Json>& values) { return Json(values); }),
                        rc::gen::map(rc::gen::pair(elements, names), [](const auto& pair) {
                          Json object = Json::object();
                          const auto& [values, keys] = pair;
                          for (std::size_t i = 0; i < std::min(values.size(), keys.size()); ++i) {
                            object.set(keys[i], values[i]);
                          }
                          return object;
                        }));
}

TEST(Json, ComesBackEqualFromItsText) {
  EXPECT_TRUE(rc::check([] {
    const Json json = *any_json(3);
    const auto indent = *rc::gen::inRange<std::size_t>(0, 4);
    const auto again = parse_json(to_text(json, indent));
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == json);
  }));
}

TEST(Json, DoublesComeBackWithEveryBit) {
  for (const double value : {0.1, 1.0 / 3, 1e308, -1e-308, 5e-324, 123456789.0, 1e22, 51.6}) {
    const auto again = parse_json(to_text(Json(value), 0));
    ASSERT_TRUE(again.ok()) << value;
    EXPECT_EQ(std::get<double>(again->value()), value);
  }
  EXPECT_TRUE(std::signbit(std::get<double>(parse_json(to_text(Json(-0.0)))->value())));
}

TEST(Json, WritesTheShortestDigits) {
  EXPECT_EQ(to_text(Json(0.1)), "0.1");
  EXPECT_EQ(to_text(Json(51.6)), "51.6");
  EXPECT_EQ(to_text(Json(3.0)), "3.0");
  EXPECT_EQ(to_text(Json(1e100)), "1e+100");
  EXPECT_EQ(to_text(Json(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
}

TEST(Json, KeepsTheOrderOfMembers) {
  EXPECT_EQ(round_trip(R"( {"z":1, "a" : [true,false,null] ,"m":{}} )"), R"({"z":1,"a":[true,false,null],"m":{}})");
}

TEST(Json, IndentsByLevel) {
  Json json = Json::object();
  json.set("workers", 7).set("stages", Json::array().append(1).append("two")).set("none", Json::array());
  EXPECT_EQ(to_text(json, 2), "{\n  \"workers\": 7,\n  \"stages\": [\n    1,\n    \"two\"\n  ],\n  \"none\": []\n}");
}

TEST(Json, SetReplacesInPlace) {
  Json json = Json::object();
  json.set("a", 1).set("b", 2).set("a", 3);
  EXPECT_EQ(to_text(json, 0), R"({"a":3,"b":2})");
  EXPECT_EQ(*json.find("b"), Json(2));
  EXPECT_EQ(json.find("c"), nullptr);
  EXPECT_EQ(Json(1).find("a"), nullptr);
}

TEST(Json, IntegersAndOtherNumbersAreDifferentValues) {
  EXPECT_NE(Json(1), Json(1.0));
  EXPECT_EQ(round_trip("[1, 1.0, 1e0, -0]"), "[1,1.0,1.0,0]");
}

TEST(Json, EscapesWhatTextMustNotHold) {
  EXPECT_EQ(to_text(Json("a\"b\\c\n\x01/ä")), R"("a\"b\\c\n\u0001/ä")");
  EXPECT_EQ(round_trip(R"("\u00e4\ud83d\ude00")"), "\"ä😀\"");
}

TEST(Json, WritesValidTextForBytesThatAreNotUtf8) {
  const std::string text = to_text(Json(std::string("a\xff\xc3")));
  EXPECT_EQ(text, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_TRUE(parse_json(text).ok());
}

TEST(JsonDeathTest, HasNoNumberForInfinityAndNan) {
  EXPECT_DEATH(Json(std::numeric_limits<double>::infinity()), "no number for infinity");
  EXPECT_DEATH(Json(std::nan("")), "no number for infinity");
  EXPECT_DEATH(Json(std::numeric_limits<std::uint64_t>::max()), "64 bits with sign");
}

}  // namespace
}  // namespace everstep::storage
