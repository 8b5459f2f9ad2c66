#include "base/result.h"

#include <memory>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace everstep {
namespace {

constexpr ErrorCode kAllCodes[] = {ErrorCode::kInvalidArgument,  ErrorCode::kNotFound,        ErrorCode::kUnavailable,
                                   ErrorCode::kDeadlineExceeded, ErrorCode::kStaleGeneration, ErrorCode::kDataLoss,
                                   ErrorCode::kCancelled,        ErrorCode::kInternal};

Status refuse_negative(int number) {
  if (number < 0) return invalid_argument(std::to_string(number) + " is negative", "use 0 or more");
  return {};
}

Result<int> half_of(int number) {
  EVERSTEP_TRY(refuse_negative(number));
  if (number % 2 != 0) return not_found("no half of " + std::to_string(number));
  return number / 2;
}

TEST(Error, IsOneLineWithTheHintInParentheses) {
  EXPECT_EQ(invalid_argument("zero workers").line(), "zero workers");
  EXPECT_EQ(invalid_argument("zero workers", "start one").line(), "zero workers (hint: start one)");
  std::ostringstream out;
  out << not_found("no such plan", "run 'everstep plan'");
  EXPECT_EQ(out.str(), "not_found: no such plan (hint: run 'everstep plan')");
}

TEST(Error, HasADistinctNameForEveryCode) {
  std::set<std::string_view> names;
  for (const ErrorCode code : kAllCodes) names.insert(to_string(code));
  EXPECT_EQ(names.size(), std::size(kAllCodes));
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = half_of(8);
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good);
  EXPECT_EQ(good.value(), 4);
  EXPECT_EQ(*good, 4);
  const Result<int> bad = half_of(7);
  ASSERT_FALSE(bad.ok());
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error(), not_found("no half of 7"));
}

TEST(Result, HandsAnErrorOnUnchanged) {
  EXPECT_EQ(half_of(-2).error(), refuse_negative(-2).error());
  EXPECT_EQ(half_of(-2).error().hint, "use 0 or more");
}

TEST(Result, LetsItsValueBeChangedAndReached) {
  Result<std::string> text = std::string("pipe");
  *text += "line";
  text->push_back('!');
  EXPECT_EQ(text.value(), "pipeline!");
  EXPECT_EQ(text->size(), 9U);
}

TEST(Result, GivesUpAValueThatCanOnlyMove) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Status, IsOkUnlessItHoldsAnError) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(refuse_negative(0));
  EXPECT_FALSE(refuse_negative(-1));
  EXPECT_EQ(refuse_negative(-1).error().code, ErrorCode::kInvalidArgument);
}

TEST(ResultDeathTest, DiesWhenTheSideThatIsNotThereIsRead) {
  EXPECT_DEATH(static_cast<void>(half_of(7).value()), "no half of 7");
  EXPECT_DEATH(static_cast<void>(*half_of(-1)), "-1 is negative \\(hint: use 0 or more\\)");
  EXPECT_DEATH(static_cast<void>(half_of(8).error()), "holds a value");
  EXPECT_DEATH(static_cast<void>(Status().error()), "is ok");
}

}  // namespace
}  // namespace everstep
