#include "storage/tensor_file.h"

#include <string>

#include <gtest/gtest.h>

namespace everstep::storage {
namespace {

constexpr std::int64_t kTwoTo40 = std::int64_t{1} << 40;

TEST(ElementType, HasATextAndASize) {
  for (const auto type : {ElementType::kFloat32, ElementType::kBfloat16, ElementType::kInt64}) {
    EXPECT_EQ(parse_element_type(to_string(type)), type);
  }
  EXPECT_EQ(to_string(ElementType::kBfloat16), "bfloat16");
  EXPECT_EQ(bytes_of(ElementType::kFloat32), 4U);
  EXPECT_EQ(bytes_of(ElementType::kBfloat16), 2U);
  EXPECT_EQ(bytes_of(ElementType::kInt64), 8U);
  for (const char* text : {"", "float", "Float32", "float32 ", "float16"})
    EXPECT_FALSE(parse_element_type(text)) << text;
}

TEST(TensorSpec, CountsElementsAndBytes) {
  EXPECT_EQ((TensorSpec{"w", ElementType::kBfloat16, {3, 5}}.elements()), 15U);
  EXPECT_EQ((TensorSpec{"w", ElementType::kBfloat16, {3, 5}}.bytes()), 30U);
  EXPECT_EQ((TensorSpec{"scalar", ElementType::kInt64, {}}.bytes()), 8U);
}

TEST(TensorSpecDeathTest, DoesNotOverflow) {
  EXPECT_DEATH((TensorSpec{"w", ElementType::kInt64, {kTwoTo40, kTwoTo40}}.bytes()), "64 bits");
  EXPECT_DEATH((TensorSpec{"w", ElementType::kInt64, {std::int64_t{1} << 61}}.bytes()), "64 bits");
  EXPECT_DEATH((TensorSpec{"w", ElementType::kInt64, {-1}}.bytes()), "negative");
}

TEST(CheckTensor, TakesWhatModelsHave) {
  EXPECT_TRUE(check({"transformer.h.0.attn.c_attn.weight", ElementType::kFloat32, {768, 2304}}));
  EXPECT_TRUE(check({"first_moment/wte.weight", ElementType::kFloat32, {50257, 768}}));
  EXPECT_TRUE(check({"scalar", ElementType::kInt64, {}}));
  EXPECT_TRUE(check({std::string(200, 'x'), ElementType::kFloat32, {1, 1, 1, 1, 1, 1, 1, 1}}));
  EXPECT_TRUE(check({"largest", ElementType::kBfloat16, {kTwoTo40 / 2}}));
}

TEST(CheckTensor, RefusesNamesThatNoFileMayHave) {
  for (const std::string& name : {std::string(), std::string(201, 'x'), std::string("a\nb"), std::string("a\0b", 3),
                                  std::string("a/b/c"), std::string("/a"), std::string("a/"), std::string("/"),
                                  std::string("é"), std::string("."), std::string("./a"), std::string("a/.")}) {
    const auto status = check({name, ElementType::kFloat32, {1}});
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    for (const char c : status.error().message) EXPECT_TRUE(c >= ' ' && c <= '~') << "it goes to a terminal";
  }
}

TEST(CheckTensor, RefusesShapesBeyondAllBounds) {
  const std::vector<std::vector<std::int64_t>> shapes = {{0},
                                                         {-1},
                                                         {kTwoTo40 + 1},
                                                         {kTwoTo40},
                                                         {kTwoTo40, kTwoTo40},
                                                         {kTwoTo40 / 4 + 1},
                                                         {2, kTwoTo40 / 4},
                                                         {1, 1, 1, 1, 1, 1, 1, 1, 1},
                                                         {std::int64_t{1} << 32, std::int64_t{1} << 32, 1}};
  for (const auto& shape : shapes) {
    EXPECT_FALSE(check({"w", ElementType::kFloat32, shape})) << testing::PrintToString(shape);
  }
}

}  // namespace
}  // namespace everstep::storage
