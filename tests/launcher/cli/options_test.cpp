#include "launcher/cli/options.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/nearest.h"
#include "tests/launcher/cli/toy_spec.h"

namespace everstep::launcher {
namespace {

using testing::ElementsAre;
using testing::Pair;

ParsedArgs parsed(const std::vector<std::string>& args, const CommandSpec& spec = toy_spec()) {
  return parse_args(spec, args).value();
}

std::string refusal(const std::vector<std::string>& args, const CommandSpec& spec = toy_spec()) {
  const auto result = parse_args(spec, args);
  return result.ok() ? "accepted" : result.error().line();
}

CommandSpec with_positional(std::size_t min, std::size_t max) {
  CommandSpec spec = toy_spec();
  spec.positional = {"LEAF", "name the leaves", min, max};
  return spec;
}

TEST(Options, AreReadWithAndWithoutAnEqualsSign) {
  EXPECT_THAT(parsed({"--cups=2", "--kind", "black"}).values, ElementsAre(Pair("cups", "2"), Pair("kind", "black")));
  EXPECT_THAT(parsed({"--json"}).values, ElementsAre(Pair("json", "true")));
  EXPECT_THAT(parsed({"--json=false"}).values, ElementsAre(Pair("json", "false")));
  EXPECT_THAT(parsed({}).values, ElementsAre());
}

TEST(Options, ValuesMayHoldAnyText) {
  EXPECT_THAT(parsed({"--svg=a=b --x,\n#"}).values, ElementsAre(Pair("svg", "a=b --x,\n#")));
  EXPECT_THAT(parsed({"--svg=", "--cups=-1"}).values, ElementsAre(Pair("cups", "-1"), Pair("svg", "")));
  EXPECT_THAT(parsed({"--svg", "-"}).values, ElementsAre(Pair("svg", "-"))) << "a dash alone is no option";
}

TEST(Options, LongValuesDoNotOverflowTheStack) {
  const std::string value(1 << 20, 'x');
  EXPECT_EQ(parsed({"--svg=" + value}).values.at("svg"), value);
  EXPECT_EQ(refusal({"--" + value}).substr(0, 20), "unknown option --xxx");
}

TEST(Options, HelpHasTwoNames) {
  EXPECT_TRUE(parsed({"-h"}).help);
  EXPECT_TRUE(parsed({"--cups=1", "--help"}).help);
  EXPECT_TRUE(parsed({"-h", "--help"}).help);
  EXPECT_FALSE(parsed({"--cups=1"}).help);
}

TEST(Options, HelpDoesNotAskForArguments) { EXPECT_TRUE(parsed({"--help"}, with_positional(1, 1)).help); }

TEST(Options, UnknownNamesAreRefusedWithTheNearestOne) {
  EXPECT_EQ(refusal({"--cusp=2"}), "unknown option --cusp (hint: did you mean --cups?)");
  EXPECT_EQ(refusal({"--memory=2"}), "unknown option --memory (hint: did you mean --memory-gib?)");
  EXPECT_EQ(refusal({"--memory_gib=2"}), "unknown option --memory_gib (hint: did you mean --memory-gib?)");
  EXPECT_EQ(refusal({"--sugar=2"}), "unknown option --sugar (hint: everstep brew --help lists the options)");
  EXPECT_EQ(refusal({"--hlep"}), "unknown option --hlep (hint: did you mean --help?)");
}

TEST(Options, ShortFormsAreRefused) {
  EXPECT_EQ(refusal({"-cups=2"}), "unknown option -cups (hint: did you mean --cups?)");
  EXPECT_EQ(refusal({"-c"}), "unknown option -c (hint: everstep brew --help lists the options)");
  EXPECT_EQ(refusal({"-hc"}), "unknown option -hc (hint: everstep brew --help lists the options)");
  EXPECT_EQ(refusal({"-help"}), "unknown option -help (hint: did you mean --help?)");
}

TEST(Options, BrokenNamesAreRefused) {
  EXPECT_EQ(refusal({"--=2"}), "unknown option -- (hint: everstep brew --help lists the options)");
  EXPECT_EQ(refusal({"---cups=2"}), "unknown option ---cups (hint: did you mean --cups?)");
  EXPECT_EQ(refusal({"--c"}), "unknown option --c (hint: everstep brew --help lists the options)");
}

TEST(Options, RepeatsAreRefused) {
  EXPECT_EQ(refusal({"--cups=2", "--kind=green", "--cups=2"}), "--cups is given 2 times");
  EXPECT_EQ(refusal({"--json", "--json", "--json=false"}), "--json is given 3 times");
}

TEST(Options, MissingValuesAreRefused) {
  EXPECT_EQ(refusal({"--cups"}), "--cups needs a value (hint: write --cups=N)");
  EXPECT_EQ(refusal({"--cups", "--json"}), "--cups needs a value (hint: write --cups=N)");
  EXPECT_EQ(refusal({"--cups", "--", "2"}), "--cups needs a value (hint: write --cups=N)");
}

TEST(Options, MayHaveAValueThatCanBeLeftOut) {
  CommandSpec spec = toy_spec();
  spec.options.push_back({.name = "again", .value_name = "CUP", .default_text = "no", .implicit_text = "last"});
  EXPECT_THAT(parsed({"--again"}, spec).values, ElementsAre(Pair("again", "last")));
  EXPECT_THAT(parsed({"--again=3"}, spec).values, ElementsAre(Pair("again", "3")));
  EXPECT_THAT(parsed({"--again", "--json"}, spec).values, ElementsAre(Pair("again", "last"), Pair("json", "true")));
  EXPECT_EQ(refusal({"--again", "3"}, spec), "unexpected argument '3' (hint: options are written --name=value)");
}

TEST(Options, StrayArgumentsAreRefused) {
  EXPECT_EQ(refusal({"--cups=2", "3"}), "unexpected argument '3' (hint: options are written --name=value)");
  EXPECT_EQ(refusal({"--json", "true"}), "unexpected argument 'true' (hint: options are written --name=value)");
  EXPECT_EQ(refusal({"--", "--cups=2"}), "unexpected argument '--cups=2' (hint: options are written --name=value)");
  EXPECT_EQ(refusal({""}), "unexpected argument '' (hint: options are written --name=value)");
}

TEST(Options, PositionalArgumentsStandWhereTheSpecAllowsThem) {
  EXPECT_THAT(parsed({"mint", "--cups=2", "a,b"}, with_positional(1, 2)).positional, ElementsAre("mint", "a,b"));
  EXPECT_THAT(parsed({"mint", "--", "--cups=2"}, with_positional(1, 2)).positional, ElementsAre("mint", "--cups=2"));
  EXPECT_EQ(refusal({"--cups=2"}, with_positional(1, 2)), "LEAF is missing (hint: name the leaves)");
  EXPECT_EQ(refusal({"a", "b", "c"}, with_positional(1, 2)),
            "unexpected argument 'c' (hint: options are written --name=value)");
}

TEST(Options, HaveAVariableInTheEnvironment) { EXPECT_EQ(environment_name("memory-gib"), "EVERSTEP_MEMORY_GIB"); }

TEST(NearestName, FindsTypingMistakesOnly) {
  const std::vector<std::string> names = {"plan", "schedule", "simulate"};
  EXPECT_EQ(nearest_name("paln", names), "plan");
  EXPECT_EQ(nearest_name("plans", names), "plan");
  EXPECT_EQ(nearest_name("shedule", names), "schedule");
  EXPECT_EQ(nearest_name("sim", names), "simulate");
  EXPECT_EQ(nearest_name("s", names), "");
  EXPECT_EQ(nearest_name("train", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("x", {"y", "xy"}), "") << "one letter says nothing";
}

TEST(ParseArgs, KnowsWhatAnOptionIsCalledElsewhere) {
  CommandSpec spec = toy_spec();
  spec.options[0].called_elsewhere = {"mugs", "vessels"};
  spec.options[1].called_elsewhere = {"vessels"};
  const auto refusal_of = [&](const std::string& arg) { return parse_args(spec, {arg}).error().line(); };
  EXPECT_EQ(refusal_of("--mugs=2"), "unknown option --mugs (hint: did you mean --cups?)");
  EXPECT_EQ(refusal_of("--vessels=2"),
            "unknown option --vessels (hint: did you mean --cups (how many cups to make) or --memory-gib (how much the "
            "pot holds; the text of this option is long enough to need a second line)?)");
}

}  // namespace
}  // namespace everstep::launcher
