#include "storage/ledger.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;

constexpr int kWindow = 4;

// From inside window 1 to inside window 4.
LedgerSegment sample_segment() {
  return sample_ledger(sample_manifest({.version = {4}, .window = kWindow, .minibatches_into_window = 2}), {6});
}

std::string refusal(const std::function<void(LedgerSegment&)>& mutate) {
  LedgerSegment segment = sample_segment();
  mutate(segment);
  const Status status = check(segment, kWindow);
  return status.ok() ? "accepted" : status.error().message;
}

TEST(LedgerCheck, AcceptsSegmentsThatCoverTheirRange) {
  EXPECT_EQ(refusal([](LedgerSegment&) {}), "accepted");
  EXPECT_EQ(refusal([](LedgerSegment& s) { s.entries.clear(), s.end = s.begin; }), "accepted");
  EXPECT_EQ(refusal([](LedgerSegment& s) {
              LedgerEntry second = s.entries[1];
              second.first = 1;
              second.losses.resize(3);
              s.entries[1].end = 1;
              s.entries[1].losses.resize(1);
              s.entries.insert(s.entries.begin() + 2, second);
            }),
            "accepted");
}

TEST(LedgerCheck, AcceptsMinibatchesThatWereLeftOutAndHaveNoLoss) {
  const auto leave_out = [](std::vector<int> minibatches, double loss = 0) {
    return [=](LedgerSegment& s) {
      s.entries[1].left_out = minibatches;
      for (double& each : s.entries[1].losses) each = loss;
    };
  };
  EXPECT_EQ(refusal(leave_out({0, 3})), "accepted");
  EXPECT_THAT(refusal(leave_out({0}, 0.5)), HasSubstr("minibatch 0 cannot have been left out"));
  EXPECT_THAT(refusal(leave_out({4})), HasSubstr("minibatch 4 cannot"));
  EXPECT_THAT(refusal(leave_out({-1})), HasSubstr("minibatch -1 cannot"));
  EXPECT_THAT(refusal(leave_out({2, 1})), HasSubstr("minibatch 1 cannot"));
  EXPECT_THAT(refusal(leave_out({2, 2})), HasSubstr("minibatch 2 cannot"));
}

TEST(LedgerCheck, AcceptsALimitOfTheNormOfASkippedWindowOnly) {
  EXPECT_EQ(refusal([](LedgerSegment& s) { s.entries[1].skipped = true, s.entries[1].norm_limit = 2.5; }), "accepted");
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].norm_limit = 2.5; }), HasSubstr("limit of the gradient"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].skipped = true, s.entries[1].norm_limit = -1; }),
              HasSubstr("limit of the gradient"));
}

TEST(LedgerCheck, RefusesGapsAndOverlaps) {
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries.erase(s.entries.begin() + 1); }), HasSubstr("window 3"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries.insert(s.entries.begin(), s.entries[0]); }),
              HasSubstr("window 1"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { std::swap(s.entries[1], s.entries[2]); }), HasSubstr("window 3"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[0].first = 1; }), HasSubstr("window 1, minibatches [1, 4)"));
}

TEST(LedgerCheck, RefusesWhatLiesOutsideTheSegment) {
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.end = {17}; }), HasSubstr("beyond the segment's end"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.end = {19}; }), HasSubstr("between position 18"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.begin = {5}; }), HasSubstr("follows position 5"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.begin = {-2}; }), HasSubstr("begin"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.end = {5}; }), HasSubstr("end"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries.clear(); }), HasSubstr("between position 6"));
}

TEST(LedgerCheck, RefusesEntriesThatAreNoneOfAWindow) {
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].end = 5; }), HasSubstr("[0, 5)"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].end = 0; }), HasSubstr("[0, 0)"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].first = -1; }), HasSubstr("[-1, 4)"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].losses.pop_back(); }), HasSubstr("3 losses"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].plan = ""; }), HasSubstr("plan"));
  EXPECT_THAT(refusal([](LedgerSegment& s) { s.entries[1].generation = {-1}; }), HasSubstr("generation"));
  EXPECT_FALSE(check(sample_segment(), 5).ok());
  EXPECT_FALSE(check(sample_segment(), 0).ok());
}

}  // namespace
}  // namespace everstep::storage
