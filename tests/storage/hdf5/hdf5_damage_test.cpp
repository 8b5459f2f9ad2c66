#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "storage/hdf5/hdf5_format.h"
#include "storage/hdf5/hdf5_header.h"
#include "tests/storage/hdf5/assembled_file.h"
#include "tests/storage/hdf5/resealed_file.h"

namespace everstep::storage {
namespace {

using Bytes = std::vector<std::byte>;

std::string complaint_about(const Bytes& file, const TensorFileSpec& spec) {
  const auto found = make_hdf5_format()->find_tensors(file, spec);
  if (found) return "";
  EXPECT_EQ(found.error().code, ErrorCode::kDataLoss);
  return found.error().message;
}

// Replaces the only occurrence of the number in the metadata, with checksums that fit.
Bytes with_number(Bytes file, std::uint64_t old_number, std::uint64_t new_number) {
  const Bytes pattern = little_endian(old_number);
  const Bytes replacement = little_endian(new_number);
  const auto at = std::search(file.begin(), file.end(), pattern.begin(), pattern.end());
  EXPECT_NE(at, file.end());
  EXPECT_EQ(std::search(at + 1, file.end(), pattern.begin(), pattern.end()), file.end());
  std::copy(replacement.begin(), replacement.end(), at);
  reseal(file);
  return file;
}

class Damage : public testing::Test {
 protected:
  TensorFileSpec spec_ = small_spec();
  TensorFileLayout layout_ = make_hdf5_format()->lay_out(spec_).value();
  Bytes file_ = assemble(spec_, layout_);
};

TEST_F(Damage, ResealingAnIntactFileChangesNothing) {
  Bytes file = file_;
  reseal(file);
  EXPECT_EQ(file, file_);
}

TEST_F(Damage, EveryFlippedBitOfTheMetadataIsFoundOrHarmless) {
  const auto format = make_hdf5_format();
  const std::size_t metadata = layout_.metadata.front().bytes.size();
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < 8 * metadata; ++bit) {
    Bytes file = file_;
    file[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto found = format->find_tensors(file, spec_);
    if (!found) continue;
    EXPECT_EQ(*found, layout_.offsets) << "bit " << bit;
    ++accepted;
  }
  EXPECT_LT(accepted, 8 * 64U);  // the gaps between headers, which nothing reads
}

TEST_F(Damage, NoFlippedBitBehindARightChecksumLeadsOutOfTheFile) {
  const auto format = make_hdf5_format();
  const std::size_t metadata = layout_.metadata.front().bytes.size();
  for (std::size_t bit = 0; bit < 8 * metadata; ++bit) {
    Bytes file = file_;
    file[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    reseal(file);
    const auto found = format->find_tensors(file, spec_);
    if (!found) continue;
    for (std::size_t i = 0; i < found->size(); ++i) {
      EXPECT_LE((*found)[i] + spec_.tensors[i].bytes(), file.size()) << "bit " << bit;
    }
  }
}

TEST_F(Damage, EveryTruncationIsFound) {
  for (std::size_t size = 0; size < file_.size(); ++size) {
    EXPECT_NE(complaint_about(Bytes(file_.begin(), file_.begin() + static_cast<std::ptrdiff_t>(size)), spec_), "");
  }
}

TEST_F(Damage, BytesBehindTheEndAreFound) {
  file_.push_back(std::byte{0});
  EXPECT_NE(complaint_about(file_, spec_).find("but its superblock says"), std::string::npos);
}

TEST_F(Damage, TensorsOutsideTheFileAreFound) {
  const std::uint64_t past_end = file_.size() - 4;
  for (const std::uint64_t offset : {past_end, std::uint64_t{1} << 40, ~std::uint64_t{7}}) {
    const std::string complaint = complaint_about(with_number(file_, layout_.offsets[0], offset), spec_);
    EXPECT_NE(complaint.find("ends before the tensor 'wte.weight' does"), std::string::npos) << complaint;
  }
}

TEST_F(Damage, UnallocatedTensorsAreFound) {
  EXPECT_EQ(complaint_about(with_number(file_, layout_.offsets[0], kNoAddress), spec_),
            "the tensor file has no bytes for the tensor 'wte.weight'");
}

TEST_F(Damage, TensorsOverOtherBytesAreFound) {
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{40}, layout_.offsets[1] - 56}) {
    const std::string complaint = complaint_about(with_number(file_, layout_.offsets[0], offset), spec_);
    EXPECT_NE(complaint.find("uses the same bytes twice"), std::string::npos) << complaint;
  }
}

TEST_F(Damage, SizesThatDifferFromTheShapeAreFound) {
  EXPECT_EQ(complaint_about(with_number(file_, 60, std::uint64_t{1} << 43), spec_),
            "the tensor file has 8796093022208 bytes for the tensor 'wte.weight' instead of 60");
}

TEST_F(Damage, LinksWithASlashInTheirNameAreFound) {
  TensorFileSpec spec{{}, {{"group.name", ElementType::kFloat32, {1}}}};
  Bytes file = make_tensor_file(spec);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  file[text.find("group.name") + 5] = std::byte{'/'};
  reseal(file);
  spec.tensors[0].name = "group/name";
  EXPECT_EQ(complaint_about(file, spec), "the tensor file has a link with '/' in its name in the root group");
}

TEST_F(Damage, WrongFieldsOfTheSuperblockAreFound) {
  const auto with_byte = [&](std::size_t at, std::uint8_t value) {
    Bytes file = file_;
    file[at] = std::byte{value};
    reseal(file);
    return complaint_about(file, spec_);
  };
  EXPECT_EQ(with_byte(0, 0), "the tensor file does not begin with the signature of HDF5");
  EXPECT_EQ(with_byte(8, 0), "the tensor file has a superblock of version 0 instead of 2");
  EXPECT_EQ(with_byte(8, 3), "the tensor file has a superblock of version 3 instead of 2");
  EXPECT_EQ(with_byte(9, 4), "the tensor file has addresses of another size than 8 bytes");
  EXPECT_EQ(with_byte(11, 1), "the tensor file is marked as open for writing");
  EXPECT_EQ(with_byte(13, 2), "the tensor file has a user block");
  EXPECT_EQ(with_byte(20, 0), "the tensor file has a superblock extension");
  EXPECT_NE(with_byte(36, 1).find("has no object header of version 2 for the root group"), std::string::npos);
  Bytes file = file_;
  file[47] ^= std::byte{1};
  EXPECT_EQ(complaint_about(file, spec_), "the tensor file has a superblock with a wrong checksum");
}

TEST_F(Damage, FilesOfAnotherSpecAreFound) {
  const auto complaint_with = [&](auto change) {
    TensorFileSpec other = spec_;
    change(other);
    return complaint_about(file_, other);
  };
  const std::string at_root = " at the root group than expected";
  EXPECT_EQ(complaint_with([](auto& s) { s.attributes.job = "job-b"; }),
            "the tensor file has another attribute 'job'" + at_root);
  EXPECT_EQ(complaint_with([](auto& s) { s.attributes.kind = "weights"; }),
            "the tensor file has another attribute 'kind'" + at_root);
  EXPECT_EQ(complaint_with([](auto& s) { s.attributes.block = 4; }),
            "the tensor file has another attribute 'block'" + at_root);
  EXPECT_EQ(complaint_with([](auto& s) { s.attributes.position = 4; }),
            "the tensor file has another attribute 'position'" + at_root);
  EXPECT_EQ(complaint_with([](auto& s) { s.attributes.version = 4; }),
            "the tensor file has another attribute 'version'" + at_root);
  EXPECT_EQ(complaint_with([](auto& s) { s.attributes.format = 4; }),
            "the tensor file has another attribute 'format'" + at_root);
  EXPECT_EQ(complaint_with([](auto& s) { s.tensors.pop_back(); }), "the tensor file has an unexpected link 'scale'");
  EXPECT_EQ(complaint_with([](auto& s) {
              s.tensors[0].shape = {3, 5};
            }),
            "the tensor file has the tensor 'wte.weight' with another shape than expected");
  EXPECT_EQ(complaint_with([](auto& s) { s.tensors[0].type = ElementType::kInt64; }),
            "the tensor file has the tensor 'wte.weight' with another type than expected");
  EXPECT_EQ(complaint_with([](auto& s) {
              s.tensors.push_back({"more", ElementType::kInt64, {1}});
            }),
            "the tensor file lacks the tensor 'more'");
}

}  // namespace
}  // namespace everstep::storage
