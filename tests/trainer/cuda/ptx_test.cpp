#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string text_of(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back(match->str());
  }
  return found;
}

// Instructions that would give other bits than the CPU: fused, approximate, or without denormal numbers.
std::vector<std::string> forbidden(const std::string& ptx) {
  return matches(ptx, R"(\bfma\.[a-z0-9.]+|\b[a-z0-9.]+\.(approx|full|ftz)\b[a-z0-9.]*)");
}

// The CPU tests' equal bits are a GPU's, too, if nvcc did nothing else than g++.
TEST(Ptx, HasOnlyOperationsThatRoundAsTheCpuDoes) {
  const std::string ptx = text_of(EVERSTEP_PTX);
  EXPECT_THAT(matches(ptx, R"(\.entry)"), SizeIs(testing::Ge(20U)));
  EXPECT_THAT(matches(ptx, R"(\bsqrt\.rn\.f32\b)"), testing::Not(IsEmpty()));
  EXPECT_THAT(matches(ptx, R"(\bdiv\.rn\.f32\b)"), testing::Not(IsEmpty()));
  EXPECT_THAT(forbidden(ptx), IsEmpty());
}

TEST(Ptx, OfABuildThatFusesIsFoundOut) {
  EXPECT_THAT(forbidden(text_of(EVERSTEP_FUSED_PTX)), Contains(HasSubstr("fma.rn.f32")));
}

TEST(Ptx, OfABuildThatApproximatesIsFoundOut) {
  const std::vector<std::string> found = forbidden(text_of(EVERSTEP_FAST_PTX));
  EXPECT_THAT(found, Contains(HasSubstr(".approx")));
  EXPECT_THAT(found, Contains(HasSubstr(".ftz")));
}

}  // namespace
}  // namespace everstep::trainer
