#include "storage/block_file.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/storage/fakes/crash_file_system.h"
#include "tests/storage/fakes/flat_tensor_format.h"

namespace everstep::storage {
namespace {

constexpr std::uint64_t kLineage = 0x2a;

class BlockFile : public testing::Test {
 protected:
  BlockFile() {
    state_.record.block = 7;
    state_.record.version = Version{3};
    state_.record.written_by = {Generation{1}, Position{12}, 0x9f3a11c2};
    state_.record.writer = {0x1f2e3d4c, 0x9a8b7c6d};
    add_tensor({"bias", ElementType::kBfloat16, {3}});
    add_tensor({"weight", ElementType::kFloat32, {700, 301}});  // more than three pieces
    add_tensor({"first_moment/weight", ElementType::kFloat32, {16}});
    EXPECT_TRUE(files_.make_directories(directory_of(kLineage, state_.record.written_by)));
    path_ = path_of(kLineage, state_.record);
  }

  void add_tensor(TensorSpec tensor) {
    const RandomStream random(1, contents_.size());
    std::vector<std::byte> bytes(tensor.bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.bits(i));
    contents_.push_back(std::move(bytes));
    state_.record.tensors.push_back(std::move(tensor));
    state_.tensors.assign(contents_.begin(), contents_.end());
  }

  FilePorts ports() { return {files_, *hashing_, format_}; }
  FilePorts ports(FileSystem& files) { return {files, *hashing_, format_}; }

  FileRecord write() {
    auto record = write_block_file(ports(), "job", kLineage, state_);
    EXPECT_TRUE(record) << record.error();
    return *record;
  }

  // The code of loading; verifying must agree with it.
  ErrorCode load_error(const FileRecord& record) {
    const auto loaded = load_block_file(ports(), "job", kLineage, record);
    const auto verified = verify_block_file(ports(), kLineage, record);
    if (loaded || verified) {
      ADD_FAILURE() << "what is damaged was taken";
      return ErrorCode::kInternal;
    }
    EXPECT_EQ(loaded.error(), verified.error());
    EXPECT_NE(loaded.error().message.find(path_), std::string::npos) << loaded.error();
    return loaded.error().code;
  }

  CrashFileSystem files_;
  std::unique_ptr<Hashing> hashing_ = make_openssl_hashing();
  FlatTensorFormat format_;
  BlockState state_;
  std::vector<std::vector<std::byte>> contents_;
  std::string path_;
};

TEST_F(BlockFile, GivesBackEveryTensor) {
  const FileRecord record = write();
  EXPECT_TRUE(verify_block_file(ports(), kLineage, record));
  const auto loaded = load_block_file(ports(), "job", kLineage, record);
  ASSERT_TRUE(loaded) << loaded.error();
  for (int i = 0; i < 3; ++i) {
    const auto tensor = loaded->tensor(record, i);
    EXPECT_TRUE(std::equal(tensor.begin(), tensor.end(), contents_[i].begin(), contents_[i].end())) << i;
  }
}

TEST_F(BlockFile, RecordsWhatIsInTheFileAndNothingElseChanges) {
  FileRecord record = write();
  const auto content = files_.content(path_);
  EXPECT_EQ(record.size, content.size());
  EXPECT_EQ(record.sha256,
            sha256_of(*hashing_, std::string_view(reinterpret_cast<const char*>(content.data()), content.size())));
  record.size = state_.record.size;
  record.sha256 = state_.record.sha256;
  EXPECT_EQ(record, state_.record);
}

TEST_F(BlockFile, PutsZerosWhereTheLayoutSaysNothing) {
  write();
  const auto content = files_.content(path_);
  std::vector<std::byte> expected(content.size());
  const auto layout = format_.lay_out(spec_of("job", state_.record));
  for (const auto& piece : layout->metadata) std::copy(piece.bytes.begin(), piece.bytes.end(), &expected[piece.offset]);
  for (std::size_t i = 0; i < 3; ++i) {
    std::copy(contents_[i].begin(), contents_[i].end(), &expected[layout->offsets[i]]);
  }
  EXPECT_EQ(content, expected);
}

TEST_F(BlockFile, IsDurableWithItsName) {
  const FileRecord record = write();
  ASSERT_TRUE(files_.sync_directory(directory_of(kLineage, record.written_by)));
  for (const CrashPolicy& policy : crash_policies(3)) {
    const auto after = files_.after_crash(policy);
    EXPECT_TRUE(load_block_file(ports(*after), "job", kLineage, record));
  }
}

TEST_F(BlockFile, FindsEveryBitThatIsNotAsWritten) {
  const FileRecord record = write();
  const RandomStream random(2, 0);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto offset = static_cast<std::size_t>(random.below(2 * i, record.size));
    const auto bit = std::byte{1} << random.below(2 * i + 1, 8);
    files_.damage(path_, offset, bit);
    EXPECT_EQ(load_error(record), ErrorCode::kDataLoss) << offset;
    files_.damage(path_, offset, bit);
  }
  EXPECT_TRUE(verify_block_file(ports(), kLineage, record));
}

TEST_F(BlockFile, FindsWhatWasCutExtendedZeroedOrRemoved) {
  const FileRecord record = write();
  const auto good = files_.content(path_);
  auto longer = good;
  longer.push_back(std::byte{0});
  auto zeroed = good;
  std::fill_n(zeroed.begin() + 8192, 4096, std::byte{0});
  for (const auto& bad :
       {longer, zeroed, std::vector<std::byte>(good.begin(), good.end() - 1), std::vector<std::byte>{}}) {
    files_.replace(path_, bad);
    EXPECT_EQ(load_error(record), ErrorCode::kDataLoss);
  }
  files_.vanish(path_);
  EXPECT_EQ(load_error(record), ErrorCode::kDataLoss);
}

TEST_F(BlockFile, OfAnotherJobOrBlockIsRefusedThoughItsHashFits) {
  const FileRecord record = write();
  const auto loaded = load_block_file(ports(), "other", kLineage, record);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kDataLoss);
  EXPECT_NE(loaded.error().message.find(path_), std::string::npos);

  FileRecord renamed = record;
  renamed.tensors[0].name = "sabi";
  EXPECT_EQ(load_block_file(ports(), "job", kLineage, renamed).error().code, ErrorCode::kDataLoss);
}

TEST_F(BlockFile, FailsOnAFullDiskAtAnyByte) {
  const std::uint64_t size = write().size;
  for (std::uint64_t room : {std::uint64_t{0}, std::uint64_t{1}, size / 2, size - 1}) {
    ++state_.record.writer.random;
    files_.faults.bytes_until_full = room;
    EXPECT_EQ(write_block_file(ports(), "job", kLineage, state_).error().code, ErrorCode::kUnavailable) << room;
  }
  ++state_.record.writer.random;
  files_.faults.bytes_until_full = size;
  EXPECT_TRUE(write_block_file(ports(), "job", kLineage, state_));
}

TEST_F(BlockFile, IsAbandonedWhenItsSyncFails) {
  files_.faults.failing_sync = files_.syncs() + 1;
  EXPECT_EQ(write_block_file(ports(), "job", kLineage, state_).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(files_.syncs(), *files_.faults.failing_sync) << "never synced again";
}

TEST_F(BlockFile, DoesNotOverwriteAnother) {
  write();
  EXPECT_EQ(write_block_file(ports(), "job", kLineage, state_).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(BlockFile, StopsWhenItIsCancelled) {
  int asked = 0;
  const auto record = write_block_file(ports(), "job", kLineage, state_, [&] { return ++asked == 3; });
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_LT(files_.content(path_).size(), contents_[1].size());
}

TEST_F(BlockFile, HandsOnWhatTheFormatRefuses) {
  state_.record.tensors[0].name = "a/b/c";
  EXPECT_EQ(write_block_file(ports(), "job", kLineage, state_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(files_.all_files().empty()) << "before anything is created";
}

using BlockFileDeathTest = BlockFile;

TEST_F(BlockFileDeathTest, NeedsTheBytesOfEachTensor) {
  state_.tensors[1] = state_.tensors[1].first(8);
  EXPECT_DEATH(write_block_file(ports(), "job", kLineage, state_).ok(), "weight");
  state_.tensors.pop_back();
  EXPECT_DEATH(write_block_file(ports(), "job", kLineage, state_).ok(), "each tensor");
}

}  // namespace
}  // namespace everstep::storage
