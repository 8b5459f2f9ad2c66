#include "storage/json/safetensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "storage/posix/posix_file_system.h"
#include "tests/temporary_directory.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;

class TextFile final : public ReadableFile {
 public:
  explicit TextFile(std::string text) : text_(std::move(text)) {}

  std::uint64_t size() const override { return text_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> bytes) const override {
    if (offset > text_.size() || bytes.size() > text_.size() - offset) return invalid_argument("past the end");
    std::memcpy(bytes.data(), text_.data() + offset, bytes.size());
    return {};
  }

 private:
  std::string text_;
};

std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + data;
}

std::string refused_file(const std::string& file) {
  const auto content = read_safetensors_header(TextFile(file));
  if (content.ok()) return "accepted";
  EXPECT_EQ(content.error().code, ErrorCode::kInvalidArgument);
  return content.error().line();
}

std::string refusal_of_header(const std::string& header, std::size_t data_bytes = 8) {
  return refused_file(with_length(header, std::string(data_bytes, 'x')));
}

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    auto files = open_posix_file_system(directory_.path().string(), false);
    ASSERT_TRUE(files.ok()) << files.error();
    files_ = std::move(files).value();
  }

  Status write(const std::vector<TensorSpec>& tensors, const std::function<bool(std::uint64_t)>& progress = {}) {
    return write_safetensors(
        *files_, "model.safetensors", tensors,
        [&](std::size_t i) -> Result<std::span<const std::byte>> {
          return std::as_bytes(std::span(content_[tensors[i].name]));
        },
        progress);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> files_;
  std::map<std::string, std::string> content_;
};

TEST_F(Safetensors, ReadsBackWhatItWrote) {
  const std::vector<TensorSpec> tensors{{"b.weight", ElementType::kFloat32, {2, 3}},
                                        {"a.bias", ElementType::kBfloat16, {5}},
                                        {"scalar", ElementType::kFloat32, {}}};
  content_ = {{"b.weight", std::string(24, 'w')}, {"a.bias", "0123456789"}, {"scalar", "abcd"}};
  ASSERT_TRUE(write(tensors).ok());

  const auto text = read_text(*files_, "model.safetensors", 1 << 20);
  ASSERT_TRUE(text.ok());
  const auto content = read_safetensors_header(TextFile(*text));
  ASSERT_TRUE(content.ok()) << content.error();
  ASSERT_EQ(content->entries.size(), 3U);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(content->entries[i].tensor, tensors[i]);
    EXPECT_EQ(text->substr(content->entries[i].offset, tensors[i].bytes()), content_[tensors[i].name]);
  }
  EXPECT_EQ(content->find("a.bias"), &content->entries[1]);
  EXPECT_EQ(content->find("c"), nullptr);
}

TEST_F(Safetensors, TheHeaderIsWhatHuggingFaceExpects) {
  content_ = {{"w", std::string(8, 'w')}};
  ASSERT_TRUE(write({{"w", ElementType::kFloat32, {2}}}).ok());
  const auto text = read_text(*files_, "model.safetensors", 1 << 20);
  ASSERT_TRUE(text.ok());
  const std::string header = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  EXPECT_EQ(*text, with_length(header + std::string(padded - header.size(), ' '), "wwwwwwww"));
}

TEST_F(Safetensors, RefusesToWriteWhatTheFormatCannotHold) {
  content_ = {{"w", std::string(8, 'w')}};
  EXPECT_THAT(write({{"w", ElementType::kInt64, {1}}}).error().line(), HasSubstr("'w' is no float"));
  EXPECT_THAT(write({{"w", ElementType::kFloat32, {2}}, {"w", ElementType::kFloat32, {2}}}).error().line(),
              HasSubstr("twice"));
  EXPECT_THAT(write({{"", ElementType::kFloat32, {2}}}).error().line(), HasSubstr("name"));
  EXPECT_TRUE(files_->list("")->empty()) << "a file was begun";
}

TEST_F(Safetensors, StopsWhenItIsToldTo) {
  content_ = {{"v", std::string(8, 'v')}, {"w", std::string(8, 'w')}};
  std::vector<std::uint64_t> told;
  const Status written = write({{"v", ElementType::kFloat32, {2}}, {"w", ElementType::kFloat32, {2}}},
                               [&](std::uint64_t bytes) { return told.push_back(bytes), false; });
  EXPECT_EQ(written.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(Safetensors, HandsOnWhyATensorIsNotThere) {
  const Status written = write_safetensors(*files_, "x", {{"w", ElementType::kFloat32, {2}}},
                                           [](std::size_t) -> Result<std::span<const std::byte>> {
                                             return Error{ErrorCode::kDataLoss, "rotten", ""};
                                           });
  EXPECT_EQ(written.error().message, "rotten");
}

TEST(SafetensorsHeader, TakesTensorsInAnyOrderAndLeavesOtherTypesOut) {
  const auto content = read_safetensors_header(TextFile(
      with_length(R"({"late":{"dtype":"F32","shape":[1],"data_offsets":[9,13]},)"
                  R"("ids":{"dtype":"I64","shape":[1],"data_offsets":[1,9]},)"
                  R"("mask":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"__metadata__":{"format":"pt"}}   )",
                  std::string(13, 'x'))));
  ASSERT_TRUE(content.ok()) << content.error();
  ASSERT_EQ(content->entries.size(), 1U);
  EXPECT_EQ(content->entries[0].tensor.name, "late");
}

TEST(SafetensorsHeader, RefusesAFileThatIsNone) {
  EXPECT_THAT(refused_file(""), HasSubstr("too short"));
  EXPECT_THAT(refused_file("1234567"), HasSubstr("too short"));
  EXPECT_THAT(refused_file("\x89HDF\r\n\x1a\n and more"), HasSubstr("no safetensors file"));
  EXPECT_THAT(refused_file(std::string(8, '\xff') + "{}"), HasSubstr("no safetensors file"));
  EXPECT_THAT(refused_file(with_length("{}", "").substr(0, 9)), HasSubstr("no safetensors file"));
  EXPECT_THAT(refused_file(with_length("[]", "")), HasSubstr("no object"));
  EXPECT_THAT(refused_file(with_length("{", "")), HasSubstr("line 1"));
  EXPECT_THAT(refused_file(with_length(std::string(100000, '['), "")), HasSubstr("nested"));
}

TEST(SafetensorsHeader, AHeaderThatClaimsGigabytesCostsNothing) {
  std::string file(64, '\0');
  const std::uint64_t claimed = std::uint64_t{17} << 20;
  std::memcpy(file.data(), &claimed, sizeof claimed);
  EXPECT_THAT(refused_file(file), HasSubstr("claims 17825792 bytes"));
}

TEST(SafetensorsHeader, RefusesOffsetsThatLie) {
  const auto one = [](const std::string& rest) { return R"({"w":{"dtype":"F32",)" + rest + "}}"; };
  EXPECT_EQ(refusal_of_header(one(R"("shape":[2],"data_offsets":[0,8])")), "accepted");
  EXPECT_THAT(refusal_of_header(one(R"("shape":[3],"data_offsets":[0,8])")), HasSubstr("w: type and shape"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[8,16])")), HasSubstr("gap"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[0,8])"), 9), HasSubstr("end at byte 8 of 9"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[0,8])"), 7), HasSubstr("end at byte 8 of 7"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[8,0])")), HasSubstr("data_offsets[1]"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[-8,0])")), HasSubstr("data_offsets[0]"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[0,8,9])")), HasSubstr("two numbers"));
  EXPECT_THAT(refusal_of_header(one(R"("shape":[2],"data_offsets":[0,9223372036854775807])")), HasSubstr("offsets[1]"));
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal_of_header(R"({"a":)" + tensor + R"(,"b":)" + tensor + "}", 4), HasSubstr("overlap"));
  EXPECT_THAT(refusal_of_header(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", 4), HasSubstr("line 1"));
}

TEST(SafetensorsHeader, RefusesShapesTypesAndNamesThatNoTensorHas) {
  const auto with = [](const std::string& name, const std::string& type, const std::string& shape) {
    return "{\"" + name + R"(":{"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":[0,8]}})";
  };
  const std::string huge = "[1099511627776,1099511627776]";
  EXPECT_THAT(refusal_of_header(with("w", "\"F32\"", huge)), HasSubstr("2^40 bytes"));
  EXPECT_THAT(refusal_of_header(with("w", "\"F32\"", "[9223372036854775807]")), HasSubstr("dimension"));
  EXPECT_THAT(refusal_of_header(with("w", "\"F32\"", "[0]")), HasSubstr("shape[0]"));
  EXPECT_THAT(refusal_of_header(with("w", "\"F32\"", "[2.0]")), HasSubstr("shape[0]"));
  EXPECT_THAT(refusal_of_header(with("w", "\"F32\"", "2")), HasSubstr("expected an array"));
  EXPECT_THAT(refusal_of_header(with("w", "\"F16\"", "[4]")), HasSubstr("float16"));
  EXPECT_THAT(refusal_of_header(with("w", "7", "[4]")), HasSubstr("expected a string"));
  EXPECT_THAT(refusal_of_header(with("../w/x", "\"F32\"", "[2]")), HasSubstr("refused"));
  EXPECT_THAT(refusal_of_header(with(R"(\u0000)", "\"F32\"", "[2]")), HasSubstr("refused"));
  EXPECT_THAT(refusal_of_header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"), HasSubstr("x"));
}

TEST(SafetensorsHeader, SurvivesAnyDamage) {
  const std::string good = with_length(R"({"v":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
                                       R"("w":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}})",
                                       std::string(8, 'x'));
  ASSERT_EQ(refused_file(good), "accepted");
  rc::check([&] {
    std::string bad = good;
    const auto place = *rc::gen::inRange<std::size_t>(0, bad.size());
    bad[place] = *rc::gen::arbitrary<char>();
    bad.resize(*rc::gen::inRange<std::size_t>(0, bad.size() + 1));
    const auto content = read_safetensors_header(TextFile(bad));
    if (!content.ok()) return;
    for (const auto& entry : content->entries) RC_ASSERT(entry.offset + entry.tensor.bytes() <= bad.size());
  });
}

}  // namespace
}  // namespace everstep::storage
