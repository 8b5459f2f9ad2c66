#include "scheduler/op.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

// Any op whose unused fields are 0, as the contract asks.
rc::Gen<Op> any_op() {
  return rc::gen::exec([] {
    const auto number = rc::gen::oneOf(rc::gen::inRange(0, 100), rc::gen::inRange(0, 1'000'000'000));
    const auto window = rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 100), rc::gen::nonNegative<std::int64_t>());
    Op op;
    op.kind = *rc::gen::element(OpKind::kForward, OpKind::kBackward, OpKind::kStartReduce, OpKind::kCapture,
                                OpKind::kUpdate, OpKind::kBackwardWeights, OpKind::kProvisional, OpKind::kTrialStep);
    op.window = *window;
    if (op.kind != OpKind::kUpdate && op.kind != OpKind::kTrialStep) op.stage = *number;
    if (op.kind != OpKind::kUpdate && op.kind != OpKind::kStartReduce) op.round = *number;
    if (is_of_minibatch(op)) op.minibatch = *number;
    return op;
  });
}

TEST(Op, IsWrittenAsOneToken) {
  EXPECT_EQ(to_string(Op{OpKind::kForward, 2, 3, 1, 0}), "F0.1.3@2");
  EXPECT_EQ(to_string(Op{OpKind::kBackward, 7, 15, 0, 1234567890123}), "B1234567890123.0.15@7");
  EXPECT_EQ(to_string(weights_of(Op{OpKind::kBackward, 2, 3, 1, 0})), "W0.1.3@2");
  EXPECT_EQ(to_string(Op{OpKind::kStartReduce, 2, 0, 0, 5}), "R5@2");
  EXPECT_EQ(to_string(Op{OpKind::kCapture, 2, 0, 1, 0}), "C0.1@2");
  EXPECT_EQ(to_string(Op{OpKind::kProvisional, 2, 0, 1, 0}), "P0.1@2");
  EXPECT_EQ(to_string(trial_step_of(3, 1)), "T3.1");
  EXPECT_EQ(to_string(update_of(9)), "U9");
}

TEST(Op, ComesBackEqualFromItsText) {
  EXPECT_TRUE(rc::check([] {
    const Op op = *any_op();
    const auto again = parse_op(to_string(op));
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == op);
  }));
}

TEST(Op, IsComputeIfForwardOrBackward) {
  EXPECT_TRUE(is_compute(Op{OpKind::kForward}));
  EXPECT_TRUE(is_compute(Op{OpKind::kBackward}));
  EXPECT_FALSE(is_compute(Op{OpKind::kStartReduce}));
  EXPECT_FALSE(is_compute(Op{OpKind::kCapture}));
  EXPECT_FALSE(is_compute(update_of(0)));
  EXPECT_FALSE(is_compute(Op{OpKind::kBackwardWeights}));
  EXPECT_TRUE(is_of_minibatch(Op{OpKind::kBackwardWeights}));
  EXPECT_FALSE(is_of_minibatch(update_of(0)));
}

TEST(Op, IsRefusedFromMalformedTextWhichIsNamed) {
  for (const std::string text :
       {"",          "F",          "f0.1.3@2", "X0.1.3@2",  "F0.1.3",    "F0.1@2",     "F0.1.3.4@2", "F0.1.3@",
        "F.1.3@2",   "F0..3@2",    "F0@1.3.2", "F0.1.3@2 ", " F0.1.3@2", "F0.1.3@2U0", "F0.1.3@-2",  "F-1.1.3@2",
        "F+1.1.3@2", "F0x1.1.3@2", "F0,1,3@2", "R0",        "R0.1@2",    "R@2",        "C0@2",       "C0.1.2@3",
        "U",         "U0@1",       "U0.1",     "U-1",       "U1e3",      "U 1"}) {
    const auto op = parse_op(text);
    ASSERT_FALSE(op) << text;
    EXPECT_EQ(op.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(op.error().line(), HasSubstr("'" + text + "' is not an op"));
    EXPECT_THAT(op.error().hint, HasSubstr("F0.1.3@2"));
  }
}

TEST(Op, RefusesNumbersThatDoNotFitInsteadOfWrappingThem) {
  EXPECT_TRUE(parse_op("U9223372036854775807"));
  EXPECT_EQ(parse_op("U9223372036854775807")->window, std::numeric_limits<std::int64_t>::max());
  for (const std::string text : {"U9223372036854775808", "U18446744073709551617", "F0.4294967297.0@0",
                                 "F0.0.0@4294967296", "F0.0.2147483648@0", "R0@99999999999999999999"}) {
    EXPECT_FALSE(parse_op(text)) << text;
  }
}

TEST(Op, IsReadFromAnyTextOrRefusedButNeverMisread) {
  EXPECT_TRUE(rc::check([] {
    std::string text = to_string(*any_op());
    const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
    text[place] = *rc::gen::elementOf(std::string("0123456789FBRCU.@ -x"));
    if (const auto op = parse_op(text)) RC_ASSERT(parse_op(to_string(*op)).value() == *op);
  }));
}

}  // namespace
}  // namespace everstep::scheduler
