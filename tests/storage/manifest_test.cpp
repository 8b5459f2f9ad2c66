#include "storage/manifest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "storage/file_system.h"
#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

CheckpointName name_of(std::int64_t generation, std::int64_t position, std::uint32_t nonce) {
  return {.generation = {generation}, .position = {position}, .nonce = nonce};
}

TEST(CheckpointNames, AreTheirGenerationPositionAndNonce) {
  EXPECT_EQ(to_string(name_of(3, 1600, 0x9f3a11c2)), "g3-p1600-9f3a11c2");
  EXPECT_EQ(to_string(name_of(0, 0, 1)), "g0-p0-00000001");
}

TEST(CheckpointNames, ComeBackFromTheirText) {
  EXPECT_TRUE(rc::check([](std::uint32_t nonce) {
    const auto name = name_of(*rc::gen::positive<std::int64_t>(), *rc::gen::nonNegative<std::int64_t>(), nonce);
    RC_ASSERT(parse_checkpoint_name(to_string(name)) == name);
  }));
}

TEST(CheckpointNames, NoOtherTextIsOne) {
  for (const char* const text : {"",
                                 "g",
                                 "g3",
                                 "g3-p1600",
                                 "g3-p1600-",
                                 "g3-p1600-9f3a11c",
                                 "g3-p1600-9f3a11c22",
                                 "g3-p1600-9F3A11C2",
                                 "g3-p1600-9f3a11cg",
                                 "g03-p1600-9f3a11c2",
                                 "g3-p01600-9f3a11c2",
                                 "g+3-p1600-9f3a11c2",
                                 "g3-p-1600-9f3a11c2",
                                 "g-3-p1600-9f3a11c2",
                                 "g3-p1600-9f3a11c2 ",
                                 " g3-p1600-9f3a11c2",
                                 "g3-p1600-9f3a11c2/..",
                                 "../g3-p1600-9f3a11c2",
                                 "g3-p1600/-9f3a11c2",
                                 "p3-g1600-9f3a11c2",
                                 "g3-p-9f3a11c2",
                                 "g-p1600-9f3a11c2",
                                 "g3p1600-9f3a11c2",
                                 "g3-p99999999999999999999-9f3a11c2",
                                 "ledger",
                                 "g3-p1-p2-9f3a11c2"}) {
    EXPECT_FALSE(parse_checkpoint_name(text).has_value()) << text;
  }
}

TEST(WriterTags, ComeBackFromTheirText) {
  EXPECT_EQ(to_string(WriterTag{.author = 0x1f2e3d4c, .random = 7}), "1f2e3d4c-00000007");
  EXPECT_TRUE(rc::check([](std::uint32_t author, std::uint32_t random) {
    const WriterTag writer{.author = author, .random = random};
    RC_ASSERT(parse_writer_tag(to_string(writer)) == writer);
  }));
  for (const char* const text : {"", "1f2e3d4c", "1f2e3d4c-0000000", "1f2e3d4c_00000007", "1f2e3d4-000000007",
                                 "1F2e3d4c-00000007", "1f2e3d4c-00000007-", "../../../-00000007"}) {
    EXPECT_FALSE(parse_writer_tag(text).has_value()) << text;
  }
}

TEST(StateKinds, ComeBackFromTheirText) {
  for (const StateKind kind :
       {StateKind::kWeights, StateKind::kPrevious, StateKind::kOptimizer, StateKind::kGradients}) {
    EXPECT_EQ(parse_state_kind(to_string(kind)), kind);
  }
  EXPECT_EQ(to_string(StateKind::kPrevious), "previous");
  EXPECT_FALSE(parse_state_kind("weight").has_value());
  EXPECT_FALSE(parse_state_kind("").has_value());
}

TEST(Paths, AreRebuiltFromTheFieldsOfARecord) {
  const FileRecord file{.block = 7,
                        .kind = StateKind::kWeights,
                        .version = {100},
                        .written_by = name_of(3, 1600, 0x9f3a11c2),
                        .writer = {.author = 0x1f2e3d4c, .random = 0x9a8b7c6d},
                        .size = 0,
                        .sha256 = {},
                        .tensors = {}};
  const std::uint64_t lineage = 0x0123456789abcdef;
  EXPECT_EQ(path_of(lineage, file), "01234567/g3-p1600-9f3a11c2/0007-weights-1f2e3d4c-9a8b7c6d.h5");
  EXPECT_EQ(directory_of(lineage, file.written_by), "01234567/g3-p1600-9f3a11c2");
  EXPECT_EQ(manifest_path(lineage, file.written_by, file.writer),
            "01234567/g3-p1600-9f3a11c2/manifest-1f2e3d4c-9a8b7c6d.json");
  EXPECT_EQ(commit_record_path(lineage, file.written_by), "01234567/g3-p1600-9f3a11c2/commit.json");
  EXPECT_EQ(ledger_path(lineage, {1600}, file.writer), "01234567/ledger/p1600-1f2e3d4c-9a8b7c6d.json");
}

// No field of a record is a text, so there is nothing in it that could lead out of the job's directory.
TEST(Paths, OfAnyRecordStayInsideTheJobsDirectory) {
  EXPECT_TRUE(rc::check([](std::uint64_t lineage, std::uint32_t nonce, std::uint32_t author, std::uint32_t random) {
    FileRecord file;
    file.block = *rc::gen::inRange(0, 200'000);
    file.kind = static_cast<StateKind>(*rc::gen::inRange(0, 4));
    file.written_by = name_of(*rc::gen::nonNegative<std::int64_t>(), *rc::gen::nonNegative<std::int64_t>(), nonce);
    file.writer = {.author = author, .random = random};
    for (const std::string& path :
         {path_of(lineage, file), directory_of(lineage, file.written_by), commit_record_path(lineage, file.written_by),
          manifest_path(lineage, file.written_by, file.writer),
          ledger_path(lineage, file.written_by.position, file.writer)}) {
      RC_ASSERT(check_path(path).ok());
      RC_ASSERT(path.find("..") == std::string::npos);
    }
  }));
}

TEST(Paths, DifferForBlocksOfMoreThanFourDigits) {
  FileRecord file;
  file.block = 12'345;
  EXPECT_NE(path_of(1, file).find("/12345-weights-"), std::string::npos);
}

TEST(ManifestFiles, AreFoundByBlockAndKind) {
  const Manifest manifest = sample_manifest({.blocks = 3, .live = true});
  std::uint64_t bytes = 0;
  for (const FileRecord& file : manifest.files) {
    EXPECT_EQ(manifest.find(file.block, file.kind), &file);
    bytes += file.size;
  }
  EXPECT_EQ(manifest.bytes(), bytes);
  EXPECT_EQ(manifest.find(0, StateKind::kGradients), nullptr);
  EXPECT_EQ(manifest.find(3, StateKind::kWeights), nullptr);
  EXPECT_EQ(manifest.find(-1, StateKind::kWeights), nullptr);
  EXPECT_TRUE(manifest.has(StateKind::kPrevious));
  EXPECT_FALSE(manifest.has(StateKind::kGradients));
}

TEST(ManifestFiles, SayAboutThemselvesWhatTheirRecordSays) {
  const Manifest manifest = sample_manifest({.live = true});
  const FileRecord& file = *manifest.find(1, StateKind::kPrevious);
  const TensorFileSpec spec = spec_of("sample", file);
  EXPECT_EQ(spec.attributes,
            (TensorFileAttributes{
                .job = "sample", .kind = "previous", .block = 1, .position = 20, .version = 4, .format = 1}));
  EXPECT_EQ(spec.tensors, file.tensors);
}

}  // namespace
}  // namespace everstep::storage
