#include "base/ids.h"

#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep {
namespace {

TEST(Counter, IsNotInterchangeableWithOtherCountersOrNumbers) {
  static_assert(!std::is_convertible_v<Generation, Version>);
  static_assert(!std::is_convertible_v<Version, Position>);
  static_assert(!std::is_convertible_v<Generation, std::int64_t>);
  static_assert(!std::is_convertible_v<std::int64_t, Generation>);
}

TEST(Counter, StartsAtZeroCountsUpAndIsOrdered) {
  static_assert(Generation{}.value == 0);
  static_assert(Generation{6}.next() == Generation{7});
  static_assert(Version{2} < Version{10});
  std::ostringstream out;
  out << Position{42};
  EXPECT_EQ(out.str(), "42");
}

TEST(WorkerId, IsWrittenAsThirtyTwoLowerCaseHexDigitsMostSignificantFirst) {
  const WorkerId id{{0x0123456789abcdef, 0xfedcba9876543210}};
  EXPECT_EQ(to_string(id), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(to_string(WorkerId{}), std::string(32, '0'));
  EXPECT_EQ(to_string(WorkerId{{std::numeric_limits<std::uint64_t>::max(), 1}}), "ffffffffffffffff0000000000000001");
  std::ostringstream out;
  out << id;
  EXPECT_EQ(out.str(), to_string(id));
}

TEST(WorkerId, ComesBackEqualFromItsText) {
  EXPECT_TRUE(rc::check([](std::uint64_t first, std::uint64_t second) {
    const WorkerId id{{first, second}};
    RC_ASSERT(parse_worker_id(to_string(id)) == id);
  }));
}

TEST(WorkerId, SortsAsItsTextDoes) {
  EXPECT_TRUE(rc::check([](std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    const WorkerId one{{a, b}};
    const WorkerId other{{c, d}};
    RC_ASSERT((one < other) == (to_string(one) < to_string(other)));
  }));
}

TEST(WorkerId, IsRefusedFromAnyOtherText) {
  const std::string good = "0123456789abcdeffedcba9876543210";
  ASSERT_TRUE(parse_worker_id(good));
  const std::string one_shorter = good.substr(1);
  for (const std::string& text :
       {std::string(), std::string("0"), one_shorter, good + "0", " " + one_shorter, one_shorter + "\n",
        "A" + one_shorter, "g" + one_shorter, "-" + one_shorter, "0x" + good.substr(2), std::string(32, '\0'),
        std::string(32, '/'), std::string(32, ':'), std::string(32, '`')}) {
    EXPECT_FALSE(parse_worker_id(text)) << "'" << text << "'";
  }
}

TEST(WorkerId, IsRefusedFromEveryOtherCharacterAtEveryPlace) {
  const std::string digits = "0123456789abcdef";
  for (std::size_t place = 0; place < 32; ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(32, '7');
      text[place] = static_cast<char>(byte);
      const bool digit = digits.find(text[place]) != std::string::npos;
      EXPECT_EQ(parse_worker_id(text).has_value(), digit) << "byte " << byte << " at " << place;
    }
  }
}

}  // namespace
}  // namespace everstep
