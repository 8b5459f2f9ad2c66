#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "storage/json/document_json.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

// The worked example of docs/checkpoint-format.md: three files as they would be on disk, each naming the one before.
class FormatPage : public testing::Test {
 protected:
  FormatPage() {
    manifest_ = sample_manifest({.job = "tiny", .blocks = 1, .minibatches_into_window = 1});
    Digest before;
    before.bytes.fill(std::byte{0xaa});
    LedgerSegment segment = sample_ledger(manifest_, {18});
    segment.before = before;
    ledger_ = seal_.seal(format_->encode(segment));
    manifest_.parent.emplace().bytes.fill(std::byte{0xbb});
    manifest_.ledger = sha256_of(*hashing_, ledger_);
    manifest_.ledger_writer = {.author = 0x1f2e3d4c, .random = 0x9a8b7c6d};
    manifest_text_ = seal_.seal(format_->encode(manifest_));
    head_ = seal_.seal(format_->encode(sample_head(manifest_, sha256_of(*hashing_, manifest_text_), 2)));
    std::ostringstream page;
    page << std::ifstream(EVERSTEP_SOURCE_DIR "/docs/checkpoint-format.md").rdbuf();
    page_ = page.str();
  }

  void expect_shown(const std::string& name, const std::string& path, const std::string& text) const {
    const std::string part = "<!-- example: " + name + " -->\n`" + path + "`\n\n```\n" + text + "```\n";
    EXPECT_NE(page_.find(part), std::string::npos) << "docs/checkpoint-format.md must show:\n" << part;
  }

  std::unique_ptr<Hashing> hashing_ = make_openssl_hashing();
  std::unique_ptr<DocumentFormat> format_ = make_json_documents();
  Seal seal_{*hashing_, ""};
  Manifest manifest_;
  std::string ledger_;
  std::string manifest_text_;
  std::string head_;
  std::string page_;
};

TEST_F(FormatPage, ShowsDocumentsAsTheyAreWritten) {
  const WriterTag writer = manifest_.ledger_writer;
  expect_shown("ledger", ledger_path(manifest_.lineage, manifest_.name.position, writer), ledger_);
  expect_shown("manifest", manifest_path(manifest_.lineage, manifest_.name, writer), manifest_text_);
  expect_shown("HEAD", "HEAD", head_);
}

TEST_F(FormatPage, NamesEveryFileOfTheExample) {
  for (const FileRecord& file : manifest_.files) {
    const std::string path = path_of(manifest_.lineage, file);
    EXPECT_NE(page_.find(path.substr(path.rfind('/') + 1)), std::string::npos) << path;
  }
  EXPECT_NE(page_.find(directory_of(manifest_.lineage, manifest_.name)), std::string::npos);
}

// What a reader copies from the page can be read.
TEST_F(FormatPage, ShowsDocumentsThatParse) {
  EXPECT_EQ(format_->parse_manifest(seal_.open(manifest_text_).value()).value(), manifest_);
  EXPECT_TRUE(format_->parse_head(seal_.open(head_).value()).ok());
  const auto segment = format_->parse_ledger_segment(seal_.open(ledger_).value());
  EXPECT_TRUE(check(segment.value(), manifest_.plan.window).ok());
}

}  // namespace
}  // namespace everstep::storage
