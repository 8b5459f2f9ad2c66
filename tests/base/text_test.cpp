#include "base/text.h"

#include <gtest/gtest.h>

namespace everstep {
namespace {

TEST(NumberText, WritesNoMoreThanNeeded) {
  EXPECT_EQ(number_text(2.5, 2), "2.5");
  EXPECT_EQ(number_text(2, 2), "2");
  EXPECT_EQ(number_text(100, 0), "100");
  EXPECT_EQ(number_text(-0.001, 2), "0");
  EXPECT_EQ(number_text(1e20, 1), "100000000000000000000");
}

TEST(FixedText, RoundsToTheDigitsAskedFor) {
  EXPECT_EQ(fixed_text(0.8207, 3), "0.821");
  EXPECT_EQ(fixed_text(1, 3), "1.000");
  EXPECT_EQ(fixed_text(2, 0), "2");
  EXPECT_EQ(fixed_text(-1.25, 1), "-1.2");
  EXPECT_EQ(fixed_text(1e308, 2).size(), 312U);
}

TEST(Grouped, PutsACommaBeforeEveryThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(9600), "9,600");
  EXPECT_EQ(grouped(1'234'567), "1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(-1234), "-1,234");
}

TEST(GibText, HasTwoDigits) {
  EXPECT_EQ(gib_text(std::int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(gib_text(0), "0.00 GiB");
}

TEST(EitherOf, HasAnOrBeforeTheLastOne) {
  EXPECT_EQ(either_of({}), "");
  EXPECT_EQ(either_of({"1"}), "1");
  EXPECT_EQ(either_of({"1", "2"}), "1 or 2");
  EXPECT_EQ(either_of({"1", "2", "4"}), "1, 2 or 4");
}

TEST(Counted, UsesTheSingularForOneOnly) {
  EXPECT_EQ(counted(0, "loss", "losses"), "0 losses");
  EXPECT_EQ(counted(1, "loss", "losses"), "1 loss");
  EXPECT_EQ(counted(1000, "loss", "losses"), "1,000 losses");
}

TEST(Trimmed, DropsBlanksAtTheEndsOnly) {
  EXPECT_EQ(trimmed("  a b\t\r"), "a b");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(ParseNumber, ReadsTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<double>("1e3"), 1000.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "99999999999"})
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
}

TEST(RangeText, NamesTheEndsThatAreNotThoseOfTheType) {
  constexpr int kMin = std::numeric_limits<int>::min();
  constexpr int kMax = std::numeric_limits<int>::max();
  EXPECT_EQ(range_text(1, 8), " from 1 to 8");
  EXPECT_EQ(range_text(1, kMax), " of at least 1");
  EXPECT_EQ(range_text(kMin, 8), " of at most 8");
  EXPECT_EQ(range_text(kMin, kMax), "");
  EXPECT_EQ(range_text(0.0, 0.5, true), " above 0 and at most 0.5");
}

TEST(Hex, ReadsBackWhatItWrote) {
  EXPECT_EQ(to_hex(std::string("\x00\x7f\xff", 3)), "007fff");
  EXPECT_EQ(from_hex("007fff"), std::string("\x00\x7f\xff", 3));
  EXPECT_EQ(hex_text(0x0123456789abcdef), "0123456789abcdef");
  EXPECT_EQ(parse_hex("ffffffffffffffff"), ~std::uint64_t{0});
  for (const char* text : {"0", "0G", "AB", "-1", "+1"}) EXPECT_EQ(from_hex(text), std::nullopt) << text;
  EXPECT_EQ(parse_hex("123"), std::nullopt);
}

TEST(LastLine, IsTheLastOneThatIsNotEmpty) {
  EXPECT_EQ(last_line("one\ntwo\n\n"), "two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("\n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace everstep
