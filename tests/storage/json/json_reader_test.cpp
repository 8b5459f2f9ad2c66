#include "storage/json/json_reader.h"

#include <string>

#include <gtest/gtest.h>

namespace everstep::storage {
namespace {

template <typename T>
std::string line_of(const Result<T>& result) {
  return result.ok() ? "accepted" : result.error().line();
}

class JsonReaderTest : public testing::Test {
 protected:
  static Json parse(std::string_view text) { return parse_json(text).value(); }

  Json json_ = parse(R"({"name": "tiny", "hidden": 64, "share": 0.5, "tied": true,
                         "blocks": [{"forward_ms": 1}, {"forward_ms": "fast"}]})");
  JsonReader reader_{json_};
};

TEST_F(JsonReaderTest, GivesTypedMembers) {
  EXPECT_EQ(reader_.text_at("name").value(), "tiny");
  EXPECT_EQ(reader_.integer_at("hidden").value(), 64);
  EXPECT_EQ(reader_.number_at("share").value(), 0.5);
  EXPECT_EQ(reader_.number_at("hidden").value(), 64.0);
  EXPECT_TRUE(reader_.boolean_at("tied").value());
  EXPECT_EQ(reader_.elements_at("blocks").value().size(), 2U);
  EXPECT_TRUE(reader_.has("name"));
  EXPECT_FALSE(reader_.has("nam"));
}

TEST_F(JsonReaderTest, NamesThePathOfAWrongType) {
  const auto blocks = reader_.elements_at("blocks").value();
  EXPECT_EQ(line_of(blocks[1].number_at("forward_ms")), "blocks[1].forward_ms: expected a number, got a string");
  EXPECT_EQ(line_of(reader_.integer_at("share")), "share: expected an integer, got 0.5");
  EXPECT_EQ(line_of(reader_.text_at("hidden")), "hidden: expected a string, got 64");
  EXPECT_EQ(line_of(reader_.boolean_at("blocks")), "blocks: expected true or false, got an array");
  EXPECT_EQ(line_of(reader_.elements_at("name")), "name: expected an array, got a string");
  EXPECT_EQ(line_of(reader_.member("name")->member("x")), "name: expected an object, got a string");
  EXPECT_EQ(line_of(reader_.number()), "top level: expected a number, got an object");
}

TEST_F(JsonReaderTest, NamesThePathOfAMissingMember) {
  const auto blocks = reader_.elements_at("blocks").value();
  EXPECT_EQ(line_of(blocks[0].number_at("backward_ms")), "blocks[0].backward_ms: missing");
  EXPECT_EQ(line_of(reader_.integer_at("layers")), "layers: missing");
}

TEST_F(JsonReaderTest, NamesTheAllowedRange) {
  EXPECT_EQ(line_of(reader_.integer_at("hidden", 1, 32)), "hidden: expected an integer from 1 to 32, got 64");
  EXPECT_EQ(line_of(reader_.integer_at("hidden", 65)), "hidden: expected an integer of at least 65, got 64");
  EXPECT_EQ(line_of(reader_.number_at("share", JsonReader::kMinNumber, 0.25)),
            "share: expected a number of at most 0.25, got 0.5");
  EXPECT_EQ(line_of(reader_.number_at("hidden", 64, 64)), "accepted");
}

TEST_F(JsonReaderTest, RefusesMembersItDoesNotKnow) {
  EXPECT_EQ(line_of(reader_.only({"name", "hidden", "share", "tied", "blocks"})), "accepted");
  EXPECT_EQ(line_of(reader_.only({"name", "hidden", "share", "tied"})),
            "top level: unknown member 'blocks' (hint: known are name, hidden, share, tied)");
  EXPECT_EQ(line_of(reader_.elements_at("blocks").value()[0].only({"backward_ms"})),
            "blocks[0]: unknown member 'forward_ms' (hint: known are backward_ms)");
}

TEST_F(JsonReaderTest, LetsTheCallerComplainAboutAPlace) {
  EXPECT_EQ(reader_.elements_at("blocks").value()[1].error("must be slower").line(), "blocks[1]: must be slower");
}

}  // namespace
}  // namespace everstep::storage
