#include "storage/json/document_json.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/storage/fakes/sample_manifest.h"
#include "tests/storage/json/document_generators.h"

namespace everstep::storage {
namespace {

class DocumentJsonTest : public testing::Test {
 protected:
  std::unique_ptr<DocumentFormat> format_ = make_json_documents();
};

template <typename T>
std::string error_line_of(const Result<T>& result) {
  return result.ok() ? "accepted" : result.error().line();
}

// Equality in every bit, where NaN equals itself: the text is stable and keeps all bits, so equal texts do.
TEST_F(DocumentJsonTest, ManifestsComeBackBitForBit) {
  EXPECT_TRUE(rc::check([&] {
    const Manifest manifest = *random_manifest();
    const std::string text = format_->encode(manifest);
    const auto parsed = format_->parse_manifest(text);
    if (!parsed) RC_FAIL(parsed.error().line());
    RC_ASSERT(bits_of(*parsed) == bits_of(manifest));
    RC_ASSERT(format_->encode(*parsed) == text);
  }));
}

TEST_F(DocumentJsonTest, HeadsComeBack) {
  EXPECT_TRUE(rc::check([&] {
    const Head head = *random_head();
    const std::string text = format_->encode(head);
    RC_ASSERT(format_->parse_head(text).value() == head);
  }));
}

TEST_F(DocumentJsonTest, LedgerSegmentsComeBackBitForBit) {
  EXPECT_TRUE(rc::check([&] {
    const Manifest manifest = *random_manifest();
    const LedgerSegment segment = *random_ledger_segment(manifest);
    RC_ASSERT(check(segment, manifest.plan.window).ok());
    const auto parsed = format_->parse_ledger_segment(format_->encode(segment));
    if (!parsed) RC_FAIL(parsed.error().line());
    RC_ASSERT(bits_of(*parsed) == bits_of(segment));
  }));
}

TEST_F(DocumentJsonTest, TextsAreIndentedAndEndWithANewline) {
  const std::string text = format_->encode(sample_manifest());
  EXPECT_TRUE(text.starts_with("{\n  \"document\": \"manifest\",\n  \"format\": 1,\n  \"job\": \"sample\",\n"));
  EXPECT_TRUE(text.ends_with("\n}\n"));
  EXPECT_NE(text.find("\"h.0.weight\": \"float32 2x3\""), std::string::npos);
}

TEST_F(DocumentJsonTest, NotANumberKeepsItsBits) {
  Manifest manifest = sample_manifest({.minibatches_into_window = 3});
  const double strange = std::bit_cast<double>(0xfff8000000000123);
  manifest.window_losses[0].loss = strange;
  manifest.window_losses[1].loss = -std::numeric_limits<double>::infinity();
  manifest.window_losses[2].loss = -0.0;
  const auto parsed = format_->parse_manifest(format_->encode(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_EQ(std::bit_cast<std::uint64_t>(parsed->window_losses[0].loss), 0xfff8000000000123);
  EXPECT_EQ(parsed->window_losses[1].loss, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::signbit(parsed->window_losses[2].loss));
}

TEST_F(DocumentJsonTest, OtherFormatsAreRefusedByTheirNumberBeforeAnythingElse) {
  const char* const newer = R"({"document": "manifest", "format": 4, "colour": "blue"})";
  EXPECT_EQ(error_line_of(format_->parse_manifest(newer)),
            "format 4, this program reads 3 (hint: use the version of everstep that wrote it)");
  EXPECT_EQ(error_line_of(format_->parse_manifest(R"({"document": "manifest", "format": "1"})")),
            "format: expected an integer, got a string");
}

TEST_F(DocumentJsonTest, APlanThatChoosesItsPipelinesIsOfTheSecondFormat) {
  Manifest manifest = sample_manifest();
  EXPECT_THAT(format_->encode(manifest), testing::HasSubstr("\"format\": 1,"));
  EXPECT_THAT(format_->encode(manifest), testing::Not(testing::HasSubstr("pipelines")));
  manifest.plan.schedule = "clockwork";
  manifest.plan.pipelines = 3;
  manifest.plan.lag = 2;
  const std::string text = format_->encode(manifest);
  EXPECT_THAT(text, testing::HasSubstr("\"format\": 2,"));
  const auto parsed = format_->parse_manifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_EQ(*parsed, manifest);
}

// What says nothing new is written as ever, and read by programs that know the first format only.
TEST_F(DocumentJsonTest, ALedgerIsOfTheSecondFormatOnlyIfItNeedsTo) {
  LedgerSegment segment = sample_ledger(sample_manifest({.version = {4}}), {0});
  const std::string first = format_->encode(segment);
  EXPECT_THAT(first, testing::HasSubstr("\"format\": 1,"));
  EXPECT_THAT(first, testing::Not(testing::AnyOf(testing::HasSubstr("left_out"), testing::HasSubstr("norm_limit"))));
  segment.entries[0].left_out = {1, 3};
  segment.entries[1].norm_limit = 0.1;
  const std::string second = format_->encode(segment);
  EXPECT_THAT(second, testing::HasSubstr("\"format\": 2,"));
  const auto parsed = format_->parse_ledger_segment(second);
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_EQ(*parsed, segment);
  EXPECT_EQ(error_line_of(format_->parse_ledger_segment(R"({"document": "ledger", "format": 4})")),
            "format 4, this program reads 3 (hint: use the version of everstep that wrote it)");
}

// A program that does not know provisional steps would go on otherwise than the run would have.
TEST_F(DocumentJsonTest, WhatProvisionalStepsNeedIsOfTheThirdFormat) {
  Manifest of_plan = sample_manifest();
  of_plan.plan.provisional = 2;
  Manifest of_clip = sample_manifest();
  of_clip.clip_scale = 0.25;
  for (const Manifest& manifest : {of_plan, of_clip}) {
    const std::string text = format_->encode(manifest);
    EXPECT_THAT(text, testing::HasSubstr("\"format\": 3,"));
    EXPECT_EQ(format_->parse_manifest(text).value(), manifest);
  }
  LedgerSegment segment = sample_ledger(sample_manifest({.version = {4}}), {0});
  segment.entries[1].provisional = true;
  const std::string text = format_->encode(segment);
  EXPECT_THAT(text, testing::HasSubstr("\"format\": 3,"));
  EXPECT_EQ(format_->parse_ledger_segment(text).value(), segment);
}

TEST_F(DocumentJsonTest, OneKindOfDocumentIsNotTakenForAnother) {
  const Manifest manifest = sample_manifest();
  const std::string head = format_->encode(sample_head(manifest, {}));
  EXPECT_EQ(error_line_of(format_->parse_manifest(head)), "top level: this is no document of the kind 'manifest'");
  EXPECT_EQ(error_line_of(format_->parse_ledger_segment(head)), "top level: this is no document of the kind 'ledger'");
  EXPECT_EQ(error_line_of(format_->parse_head(format_->encode(manifest))),
            "top level: this is no document of the kind 'head'");
}

TEST_F(DocumentJsonTest, LongRunsOfWindowsAreShort) {
  Manifest manifest = sample_manifest({.version = {100'000}});
  manifest.flushed.clear();
  for (int window = 0; window < 100'000; ++window) manifest.flushed.push_back(window);
  const std::string text = format_->encode(manifest);
  EXPECT_LT(text.size(), 10'000U);
  EXPECT_EQ(format_->parse_manifest(text).value(), manifest);
}

}  // namespace
}  // namespace everstep::storage
