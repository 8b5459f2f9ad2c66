#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "storage/json/json.h"

namespace everstep::storage {
namespace {

// The error line, or "accepted".
std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto json = parse_json(text, limits);
  if (json.ok()) return "accepted";
  EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
  return json.error().line();
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(JsonParse, NamesLineAndColumnOfASyntaxError) {
  EXPECT_EQ(refusal("{\n  \"a\": tru\n}"), "line 2, column 11: syntax error while parsing value - invalid literal");
  EXPECT_EQ(refusal("{\"a\": 1,}"),
            "line 1, column 9: syntax error while parsing object key - unexpected '}'; expected string literal");
  EXPECT_EQ(refusal("[1"),
            "line 1, column 3: syntax error while parsing array - unexpected end of input; expected ']'");
  EXPECT_EQ(refusal(""),
            "line 1, column 1: syntax error while parsing value - unexpected end of input; expected '[', "
            "'{', or a literal");
}

TEST(JsonParse, CountsColumnsInCharacters) {
  EXPECT_EQ(refusal("[\"äöü\" x]"), "line 1, column 8: syntax error while parsing array - invalid literal");
}

TEST(JsonParse, RefusesDataAfterTheValue) {
  EXPECT_EQ(refusal("{} {}"),
            "line 1, column 4: syntax error while parsing value - unexpected '{'; expected end of input");
  EXPECT_EQ(refusal("1\n2"),
            "line 2, column 1: syntax error while parsing value - unexpected number literal; expected end of input");
}

TEST(JsonParse, RefusesRepeatedNamesWhereTheSecondOneStands) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"b\": 2, \"a\": 3}"),
            "line 2, column 10: this member name is already used in the object");
  EXPECT_EQ(refusal(R"({"a\"b": 1, "a\u0022b": 3})"),
            "line 1, column 13: this member name is already used in the object");
  EXPECT_EQ(refusal(R"({"a\"b": 1, "a\"b": 3})"), "line 1, column 13: this member name is already used in the object");
  EXPECT_EQ(refusal(R"({"": 1, "": 3})"), "line 1, column 9: this member name is already used in the object");
  EXPECT_EQ(refusal(R"([{"a": {"a": 1}}, {"a": 2}])"), "accepted");
}

TEST(JsonParse, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(refusal("[1e999]"), "line 1, column 2: the number is too large for a double");
  EXPECT_EQ(refusal("-1e999"), "line 1, column 1: the number is too large for a double");
  EXPECT_EQ(refusal("[9223372036854775808]"), "line 1, column 2: the integer does not fit in 64 bits with sign");
  EXPECT_EQ(refusal("[0,\n -9223372036854775809]"), "line 2, column 2: the integer does not fit in 64 bits with sign");
  EXPECT_EQ(refusal("18446744073709551616"), "line 1, column 1: the integer does not fit in 64 bits with sign");
  EXPECT_EQ(refusal("[9223372036854775807, -9223372036854775808]"), "accepted");
  for (const char* text : {"NaN", "Infinity", "-Infinity", "nan", "0x10", "01", "+1", "1.", ".5", "1e"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(JsonParse, RefusesNulBytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(refusal("1\0 garbage"sv), "line 1, column 2: a NUL byte");
  EXPECT_EQ(refusal("\"a\n\0\""sv), "line 2, column 1: a NUL byte");
  EXPECT_EQ(refusal("\0"sv), "line 1, column 1: a NUL byte");
  EXPECT_EQ(refusal(R"("\u0000")"), "accepted");
}

TEST(JsonParse, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(refusal("\"\xff\""),
            "line 1, column 2: syntax error while parsing value - invalid string: ill-formed UTF-8 byte");
  for (const char* text : {"\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc3\"", "[\xff]"}) {
    EXPECT_NE(refusal(text), "accepted");
  }
}

TEST(JsonParse, RefusesLoneSurrogates) {
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800\u0041")", R"("\ud800x")", R"("\ud83d\ud83d")"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(JsonParse, RefusesControlCharactersInStringsAndComments) {
  EXPECT_NE(refusal("\"a\nb\""), "accepted");
  EXPECT_NE(refusal("// no\n1"), "accepted");
}

TEST(JsonParse, StopsAtTheDepthLimit) {
  const JsonLimits limits{.depth = 3};
  EXPECT_EQ(refusal("[[[1]]]", limits), "accepted");
  EXPECT_EQ(refusal("[[{\"a\": [1]}]]", limits), "line 1, column 9: nested deeper than 3 levels");
  EXPECT_EQ(refusal(repeated("[", 5'000'000)), "line 1, column 65: nested deeper than 64 levels");
  EXPECT_EQ(refusal(repeated("{\"a\":", 1'000'000)), "line 1, column 321: nested deeper than 64 levels");
}

TEST(JsonParse, StopsAtTheValueLimit) {
  const JsonLimits limits{.values = 4};
  EXPECT_EQ(refusal("[1, [2]]", limits), "accepted");
  EXPECT_EQ(refusal("[1, [2, true]]", limits), "line 1, column 12: more than 4 values");
  EXPECT_EQ(refusal("[" + repeated("[],", 5'000'000) + "[]]"), "line 1, column 2999999: more than 1000000 values");
}

TEST(JsonParse, RefusesTextOverTheByteLimitUnread) {
  EXPECT_EQ(refusal("[1,2]", {.bytes = 5}), "accepted");
  EXPECT_EQ(refusal("[1, 2]", {.bytes = 5}), "the text has 6 bytes, the limit is 5");
}

TEST(JsonParse, KeepsMessagesShortForLongTokens) {
  EXPECT_LT(refusal("\"" + std::string(1 << 20, 'x')).size(), 200U);
  EXPECT_LT(refusal(std::string(1 << 20, 't')).size(), 200U);
}

TEST(JsonParse, ReadsManyMembersWithoutSlowingDown) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  text += "\"end\":0}";
  EXPECT_EQ(refusal(text), "accepted");
}

TEST(JsonParse, SurvivesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) { static_cast<void>(parse_json(bytes)); }));
  const std::string valid = R"({"a": [1, -2.5e3, "x\u00e4"], "b": {"c": null, "d": true}})";
  EXPECT_TRUE(rc::check([&] {
    std::string damaged = valid;
    const auto at = *rc::gen::inRange<std::size_t>(0, valid.size());
    damaged[at] = *rc::gen::arbitrary<char>();
    damaged.resize(*rc::gen::inRange<std::size_t>(at, valid.size()) + 1);
    const auto json = parse_json(damaged);
    if (json) RC_ASSERT(*parse_json(to_text(*json)) == *json);
  }));
}

}  // namespace
}  // namespace everstep::storage
