#include <functional>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/json/document_json.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;

class HostileDocumentTest : public testing::Test {
 protected:
  std::unique_ptr<DocumentFormat> format_ = make_json_documents();
  const std::string manifest_ = format_->encode(sample_manifest({.minibatches_into_window = 2}));

  // What is said to a manifest in which the first `old_text` became `new_text`.
  std::string refusal(std::string_view old_text, std::string_view new_text) const {
    std::string changed = manifest_;
    const std::size_t at = changed.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    return refusal_of(changed.replace(at, old_text.size(), new_text));
  }

  std::string refusal_of(std::string_view text) const {
    const auto parsed = format_->parse_manifest(text);
    if (parsed.ok()) return "accepted";
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos) << "one line";
    EXPECT_LT(parsed.error().line().size(), 500U);
    return parsed.error().message;
  }
};

std::string many_times(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

// There is no member that holds a path. These are the texts of which paths are made, and all have a fixed form.
TEST_F(HostileDocumentTest, NoTextThatEntersAPathCanLeadElsewhere) {
  EXPECT_EQ(manifest_.find(".h5"), std::string::npos);
  for (const char* const path : {"../../etc/passwd", "/etc/passwd", "..", ".", "", "a/../b", "C:\\\\x", "\\u0000"}) {
    EXPECT_THAT(refusal("\"job\": \"sample\"", std::string("\"job\": \"") + path + "\""), HasSubstr("job"));
    EXPECT_THAT(refusal("0123456789abcdef", path), HasSubstr("lineage"));
    EXPECT_THAT(refusal("\"checkpoint\": \"g3-p22-9f3a11c2\"", std::string("\"checkpoint\": \"") + path + "\""),
                HasSubstr("checkpoint"));
    EXPECT_THAT(refusal("\"written_by\": \"g3-p22-9f3a11c2\"", std::string("\"written_by\": \"") + path + "\""),
                HasSubstr("files[0].written_by"));
    EXPECT_THAT(refusal("\"writer\": \"1f2e3d4c", std::string("\"writer\": \"") + path), HasSubstr("files[0].writer"));
    EXPECT_THAT(refusal("\"kind\": \"weights\"", std::string("\"kind\": \"") + path + "\""),
                HasSubstr("files[0].kind"));
  }
  EXPECT_THAT(refusal("\"h.0.weight\"", "\"../../h.0.weight\""), HasSubstr("block 0, weights"));
  EXPECT_THAT(refusal("\"h.0.weight\"", "\"/h.0.weight\""), HasSubstr("block 0, weights"));
  EXPECT_THAT(refusal("\"h.0.weight\"", "\"a/b/c\""), HasSubstr("block 0, weights"));
}

TEST_F(HostileDocumentTest, WrongTypesAreRefusedByTheirPlace) {
  EXPECT_THAT(refusal("\"job\": \"sample\"", "\"job\": 7"), HasSubstr("job: expected a string, got 7"));
  EXPECT_THAT(refusal("\"version\": 5", "\"version\": \"5\""), HasSubstr("version: expected an integer"));
  EXPECT_THAT(refusal("\"version\": 5", "\"version\": 5.0"), HasSubstr("version: expected an integer"));
  EXPECT_THAT(refusal("\"version\": 5", "\"version\": null"), HasSubstr("version: expected an integer"));
  EXPECT_THAT(refusal("\"flushed\": [", "\"flushed\": [7, "), HasSubstr("flushed"));
  EXPECT_THAT(refusal("\"loss\": 2.5", "\"loss\": 2"), HasSubstr("loss"));
  EXPECT_THAT(refusal("\"loss\": 2.5", "\"loss\": \"3ff0000000000000\""), HasSubstr("loss"));
  EXPECT_THAT(refusal("\"loss\": 2.5", "\"loss\": \"NaN\""), HasSubstr("loss"));
  EXPECT_THAT(refusal("\"parent\": null", "\"parent\": \"abc\""), HasSubstr("parent"));
  EXPECT_THAT(refusal("\"model\": \"tiny\"", "\"model\": [\"tiny\"]"), HasSubstr("configuration"));
  EXPECT_THAT(refusal("\"plan\": {", "\"plan\": [{}], \"x\": {"), HasSubstr("unknown member 'x'"));
  EXPECT_THAT(refusal("\"files\": [", "\"files\": [[],"), HasSubstr("files[0]: expected an object"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("top level: expected an object"));
  EXPECT_THAT(refusal_of("null"), HasSubstr("top level: expected an object"));
}

TEST_F(HostileDocumentTest, UnknownMissingAndRepeatedMembersAreRefused) {
  EXPECT_THAT(refusal("\"job\"", "\"path\": \"x\", \"job\""), HasSubstr("unknown member 'path'"));
  EXPECT_THAT(refusal("\"depth\"", "\"device\": 1, \"depth\""), HasSubstr("plan: unknown member 'device'"));
  EXPECT_THAT(refusal("\"kind\"", "\"path\": \"/x\", \"kind\""), HasSubstr("files[0]: unknown member 'path'"));
  EXPECT_THAT(refusal("\"job\": \"sample\",", ""), HasSubstr("job: missing"));
  EXPECT_THAT(refusal("\"parent\": null,", ""), HasSubstr("parent: missing"));
  EXPECT_THAT(refusal("\"block\": 0,", ""), HasSubstr("files[0].block: missing"));
  EXPECT_THAT(refusal("\"job\"", "\"job\": \"other\", \"job\""), HasSubstr("already used"));
  EXPECT_THAT(refusal("\"h.0.bias\"", "\"h.0.weight\""), HasSubstr("already used"));
}

TEST_F(HostileDocumentTest, NumbersBeyondBoundsAreRefused) {
  EXPECT_THAT(refusal("\"version\": 5", "\"version\": -5"), HasSubstr("version"));
  EXPECT_THAT(refusal("\"version\": 5", "\"version\": 9223372036854775807"), HasSubstr("version"));
  EXPECT_THAT(refusal("\"version\": 5", "\"version\": 18446744073709551616"), HasSubstr("64 bits"));
  EXPECT_THAT(refusal("\"blocks\": 2", "\"blocks\": 1000000000"), HasSubstr("blocks"));
  EXPECT_THAT(refusal("\"blocks\": 2", "\"blocks\": -2"), HasSubstr("blocks"));
  EXPECT_THAT(refusal("\"block\": 0", "\"block\": -1"), HasSubstr("files[0].block"));
  EXPECT_THAT(refusal("\"block\": 1", "\"block\": 0"), HasSubstr("block 1, weights"));
  EXPECT_THAT(refusal("\"window\": 4", "\"window\": 2147483647"), HasSubstr("plan.window"));
  EXPECT_THAT(refusal("\"size\": 28", "\"size\": 9223372036854775807"), HasSubstr("files[0].size"));
  EXPECT_THAT(refusal("\"size\": 28", "\"size\": -1"), HasSubstr("files[0].size"));
  EXPECT_THAT(refusal("\"size\": 28", "\"size\": 27"), HasSubstr("block 0, weights"));
  EXPECT_THAT(refusal("float32 2x3", "float32 1099511627776x1099511627776"), HasSubstr("block 0, weights"));
  EXPECT_THAT(refusal("float32 2x3", "float32 -2x-3"), HasSubstr("block 0, weights"));
  EXPECT_THAT(refusal("float32 2x3", "float32 " + many_times("1x", 90) + "1"), HasSubstr("block 0, weights"));
}

TEST_F(HostileDocumentTest, ShapesHaveOneFormOnly) {
  for (const char* const text :
       {"float32 02x3", "float32 2x", "float32 x3", "float32  2x3", "float32 2 3", "float32 ", "float32x2x3",
        "float64 2x3", "", "float32 2x3x", "float32 99999999999999999999", "float32 +2x3", "float32 2X3"}) {
    EXPECT_THAT(refusal("float32 2x3", text), HasSubstr("files[0].tensors: member 0: expected a type and a shape"))
        << text;
  }
}

TEST_F(HostileDocumentTest, RunsOfWindowsCannotGrowWithoutBound) {
  const auto with_runs = [&](std::string_view runs) {
    return refusal("\"skipped\": []", "\"skipped\": " + std::string(runs));
  };
  EXPECT_THAT(with_runs("[[0, 9223372036854775807]]"), HasSubstr("skipped: names more than"));
  EXPECT_THAT(with_runs("[[0, 10000000], [20000000, 20000001]]"), HasSubstr("skipped: names more than"));
  EXPECT_THAT(with_runs("[[-9223372036854775808, 9223372036854775807]]"), HasSubstr("skipped: expected runs"));
  EXPECT_THAT(with_runs("[[3, 3]]"), HasSubstr("skipped: expected runs"));
  EXPECT_THAT(with_runs("[[3, 4], [2, 3]]"), HasSubstr("skipped: expected runs"));
  EXPECT_THAT(with_runs("[[2, 3], [3, 4]]"), HasSubstr("skipped: expected runs"));
  EXPECT_THAT(with_runs("[[2, 3, 4]]"), HasSubstr("skipped: expected runs"));
  EXPECT_THAT(with_runs("[2, 3]"), HasSubstr("skipped: expected runs"));
}

TEST_F(HostileDocumentTest, CountsBeyondBoundsAreRefused) {
  EXPECT_THAT(refusal("\"cuts\": [", "\"cuts\": [" + many_times("0,", 100'002)),
              HasSubstr("plan.cuts: expected an array"));
  EXPECT_THAT(refusal("\"files\": [", "\"files\": [" + many_times("{},", 500'001)),
              HasSubstr("files: expected an array"));
  EXPECT_THAT(refusal("\"window_losses\": [", "\"window_losses\": [" + many_times("1.0,", 1'048'577)),
              HasSubstr("window_losses: expected an array"));
  std::string settings;
  for (int i = 0; i < 10'001; ++i) settings += "\"" + std::to_string(i) + "\": \"\",";
  EXPECT_THAT(refusal("\"configuration\": {", "\"configuration\": {" + settings), HasSubstr("configuration"));
  EXPECT_THAT(refusal("\"tensors\": {", "\"tensors\": {" + settings), HasSubstr("files[0].tensors"));
  EXPECT_THAT(refusal("\"tiny\"", "\"" + std::string(65'537, 'x') + "\""), HasSubstr("configuration"));
  EXPECT_THAT(refusal("\"sample\"", "\"" + std::string(1'000'000, 'x') + "\""), HasSubstr("job: has 1000000 bytes"));
}

TEST_F(HostileDocumentTest, HugeAndDeepTextsAreRefusedEarly) {
  EXPECT_THAT(refusal_of(std::string(100'000'000, ' ')), HasSubstr("100000000 bytes"));
  EXPECT_THAT(refusal_of(many_times("[", 1'000'000)), HasSubstr("nested deeper than 8"));
  EXPECT_THAT(refusal_of(many_times("{\"a\":", 1'000'000)), HasSubstr("nested deeper than 8"));
  EXPECT_THAT(refusal_of("[" + many_times("0,", 5'000'000) + "0]"), HasSubstr("more than 4000000 values"));
}

TEST_F(HostileDocumentTest, TextsCutAnywhereAreRefused) {
  const std::string head = format_->encode(sample_head(sample_manifest(), {}));
  const std::string ledger = format_->encode(sample_ledger(sample_manifest()));
  for (std::size_t size = 0; size + 1 < manifest_.size(); ++size) {
    ASSERT_FALSE(format_->parse_manifest(std::string_view(manifest_).substr(0, size)).ok()) << size;
  }
  for (std::size_t size = 0; size + 1 < head.size(); ++size) {
    ASSERT_FALSE(format_->parse_head(std::string_view(head).substr(0, size)).ok()) << size;
  }
  for (std::size_t size = 0; size + 1 < ledger.size(); ++size) {
    ASSERT_FALSE(format_->parse_ledger_segment(std::string_view(ledger).substr(0, size)).ok()) << size;
  }
}

// Unsealed, a flipped bit may pass for another good document, but never crashes the parser or passes its check.
TEST_F(HostileDocumentTest, AFlippedBitGivesAnErrorOrADocumentThatPassesItsCheck) {
  const std::string small = format_->encode(sample_manifest({.blocks = 1}));
  int accepted = 0;
  for (std::size_t bit = 0; bit < small.size() * 8; ++bit) {
    std::string changed = small;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto parsed = format_->parse_manifest(changed);
    if (!parsed.ok()) continue;
    ++accepted;
    ASSERT_TRUE(check(*parsed).ok());
  }
  EXPECT_GT(accepted, 0) << "this is why files are sealed";
}

TEST_F(HostileDocumentTest, ASealFindsEachBitThatFlippedInAManifest) {
  const auto hashing = make_openssl_hashing();
  const Seal seal(*hashing, "");
  const std::string sealed = seal.seal(manifest_);
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string changed = sealed;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_FALSE(seal.open(changed).ok()) << bit;
  }
}

}  // namespace
}  // namespace everstep::storage
