#include "launcher/cli/values.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/launcher/cli/toy_spec.h"

namespace everstep::launcher {
namespace {

Config with_flag(const std::string& name, const std::string& value) {
  return merge_config(toy_spec(), {.args = {.values = {{name, value}}}}).value();
}

// What the getter says about `--cups=value`: the error line, or "accepted".
std::string refusal(const std::string& value, const std::function<void(Values&)>& get) {
  const Config config = with_flag("cups", value);
  Values values(config);
  get(values);
  if (!values.failure()) return "accepted";
  EXPECT_EQ(values.failure()->exit_code, ExitCode::kUsage);
  return values.failure()->error.line();
}

TEST(Values, AreTyped) {
  const Config config = merge_config(toy_spec(), {.args = {.values = {{"cups", "-3"},
                                                                      {"memory-gib", "51.6"},
                                                                      {"kind", "black"},
                                                                      {"svg", "a b.svg"},
                                                                      {"json", "true"}}}})
                            .value();
  Values values(config);
  EXPECT_EQ(values.integer("cups"), -3);
  EXPECT_EQ(values.number("memory-gib"), 51.6);
  EXPECT_EQ(values.choice("kind", {"green", "black"}), 1U);
  EXPECT_EQ(values.path("svg"), "a b.svg");
  EXPECT_EQ(values.text("svg"), "a b.svg");
  EXPECT_TRUE(values.flag("json"));
  EXPECT_EQ(values.failure(), std::nullopt);
}

TEST(Values, IntegersAreWholeTextsInTheirRange) {
  const auto any = [](Values& values) { values.integer("cups"); };
  for (const char* bad : {"", " 1", "1 ", "1.5", "0x10", "+1", "1e3", "seven", "9223372036854775808", "--1"}) {
    EXPECT_EQ(refusal(bad, any), "--cups=" + std::string(bad) + ": expected an integer");
  }
  EXPECT_EQ(refusal("9223372036854775807", any), "accepted");
  const auto range = [](Values& values) { values.integer("cups", {.min = 1, .max = 8}); };
  EXPECT_EQ(refusal("1", range), "accepted");
  EXPECT_EQ(refusal("8", range), "accepted");
  EXPECT_EQ(refusal("0", range), "--cups=0: expected an integer from 1 to 8");
  EXPECT_EQ(refusal("9", range), "--cups=9: expected an integer from 1 to 8");
  EXPECT_EQ(refusal("0", [](Values& values) { values.integer("cups", {.min = 1}); }),
            "--cups=0: expected an integer of at least 1");
  EXPECT_EQ(refusal("9", [](Values& values) { values.integer("cups", {.max = 8}); }),
            "--cups=9: expected an integer of at most 8");
}

TEST(Values, NumbersAreFiniteAndInTheirRange) {
  const auto any = [](Values& values) { values.number("cups"); };
  for (const char* bad : {"", "nan", "inf", "-inf", "1e999", "1,5", "1.5x", "0x1p3"}) {
    EXPECT_EQ(refusal(bad, any), "--cups=" + std::string(bad) + ": expected a number");
  }
  EXPECT_EQ(refusal("1e3", any), "accepted");
  const auto positive = [](Values& values) { values.number("cups", {.min = 0, .above_min = true}); };
  EXPECT_EQ(refusal("0", positive), "--cups=0: expected a number above 0");
  EXPECT_EQ(refusal("1e-9", positive), "accepted");
  const auto share = [](Values& values) { values.number("cups", {.min = 0, .max = 1, .above_min = true}); };
  EXPECT_EQ(refusal("1.25", share), "--cups=1.25: expected a number above 0 and at most 1");
  EXPECT_EQ(refusal("-1", [](Values& values) { values.number("cups", {.min = 0, .max = 0.5}); }),
            "--cups=-1: expected a number from 0 to 0.5");
}

TEST(Values, ListsOfNumbersAreWrittenWithCommas) {
  const Config config = with_flag("cups", "51.6,5,2");
  Values values(config);
  EXPECT_EQ(values.numbers("cups", {.min = 0}), (std::vector<double>{51.6, 5, 2}));
  EXPECT_EQ(values.failure(), std::nullopt);
  const auto get = [](Values& wrong) { wrong.numbers("cups", {.min = 0}); };
  for (const char* bad : {"", ",", "1,", ",1", "1,,2", "1, 2", "1,-2"}) {
    EXPECT_EQ(refusal(bad, get),
              "--cups=" + std::string(bad) + ": expected numbers of at least 0 with commas between them");
  }
}

TEST(Values, ChoicesNameTheAllowedOnes) {
  const auto get = [](Values& values) { values.choice("cups", {"green", "black"}); };
  EXPECT_EQ(refusal("red", get), "--cups=red: expected one of green, black");
  EXPECT_EQ(refusal("balck", get), "--cups=balck: expected one of green, black (hint: did you mean black?)");
}

TEST(Values, FlagsAreTrueOrFalse) {
  const auto get = [](Values& values) { values.flag("cups"); };
  EXPECT_EQ(refusal("yes", get), "--cups=yes: expected true or false");
  EXPECT_EQ(refusal("false", get), "accepted");
}

TEST(Values, PathsAreNotEmpty) {
  EXPECT_EQ(refusal("", [](Values& values) { values.path("cups"); }), "--cups=: expected a path");
  EXPECT_EQ(refusal("", [](Values& values) { values.text("cups"); }), "accepted");
}

TEST(Values, MissingOnesAreUsageErrors) {
  const Config config = merge_config(toy_spec(), {}).value();
  Values values(config);
  EXPECT_EQ(values.integer("cups"), 0);
  EXPECT_EQ(values.failure(),
            Failure(invalid_argument("--cups is missing", "everstep brew --help says what it is"), ExitCode::kUsage));
}

TEST(Values, TheFirstComplaintStays) {
  const Config config = with_flag("cups", "none");
  Values values(config);
  values.integer("cups");
  values.path("svg");
  values.choice("kind", {"black"});
  EXPECT_EQ(values.failure()->error.line(), "--cups=none: expected an integer");
}

TEST(Values, ComplaintsNameTheSource) {
  const Config from_file =
      merge_config(toy_spec(), {.args = {}, .file = ConfigFile{"tea.conf", "\ncups = many"}}).value();
  Values file_values(from_file);
  file_values.integer("cups", {.min = 1});
  EXPECT_EQ(file_values.failure(),
            Failure(invalid_argument("tea.conf line 2: cups = many: expected an integer of at least 1"),
                    ExitCode::kConfiguration));

  const Config from_environment =
      merge_config(toy_spec(), {.args = {}, .environment = {{"EVERSTEP_CUPS", ""}}}).value();
  Values environment_values(from_environment);
  environment_values.integer("cups");
  EXPECT_EQ(environment_values.failure(),
            Failure(invalid_argument("EVERSTEP_CUPS=: expected an integer"), ExitCode::kConfiguration));
}

}  // namespace
}  // namespace everstep::launcher
