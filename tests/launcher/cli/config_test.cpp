#include "launcher/cli/config.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/launcher/cli/toy_spec.h"

namespace everstep::launcher {
namespace {

std::string refused_sources(const ConfigSources& sources) {
  const auto config = merge_config(with_common_options(toy_spec()), sources);
  if (config.ok()) return "accepted";
  EXPECT_EQ(Failure(config.error()).exit_code, ExitCode::kConfiguration);
  return config.error().line();
}

std::string file_refusal(std::string text) {
  return refused_sources({.args = {}, .file = ConfigFile{"tea.conf", text}});
}

Config merged(const ConfigSources& sources) { return merge_config(with_common_options(toy_spec()), sources).value(); }

// Each of the sixteen ways in which a value may be given or not, for an option with and one without a default.
TEST(Config, FlagWinsOverEnvironmentOverFileOverDefault) {
  for (const std::string name : {"memory-gib", "svg"}) {
    for (int given = 0; given < 8; ++given) {
      ConfigSources sources;
      if ((given & 1) != 0) sources.file = ConfigFile{"tea.conf", "# first\n" + name + " = in-file\n"};
      if ((given & 2) != 0) sources.environment[environment_name(name)] = "in-environment";
      if ((given & 4) != 0) sources.args.values[name] = "in-flag";
      const Config config = merged(sources);
      const Setting& setting = config.setting(name);
      if ((given & 4) != 0) {
        EXPECT_EQ(setting, (Setting{name, "in-flag", Source::kFlag})) << given;
      } else if ((given & 2) != 0) {
        EXPECT_EQ(setting, (Setting{name, "in-environment", Source::kEnvironment})) << given;
      } else if ((given & 1) != 0) {
        EXPECT_EQ(setting, (Setting{name, "in-file", Source::kFile, 2})) << given;
      } else if (name == "memory-gib") {
        EXPECT_EQ(setting, (Setting{name, "40", Source::kDefault}));
      } else {
        EXPECT_EQ(setting, (Setting{name, std::nullopt, Source::kDefault}));
        EXPECT_FALSE(config.is_set(name));
      }
    }
  }
}

TEST(Config, FlagsAreFalseUnlessGiven) {
  EXPECT_EQ(merged({}).setting("json").text, "false");
  EXPECT_EQ(merged({.args = {}, .environment = {{"EVERSTEP_JSON", "true"}}}).setting("json").text, "true");
}

TEST(Config, FileHasCommentsBlanksAndEmptyLines) {
  const ConfigFile file{"tea.conf", "\n  # a comment\n\tcups=2 # two\r\nsvg = a b#c = d\t\nkind =\n\n"};
  const Config config = merged({.args = {}, .file = file});
  EXPECT_EQ(config.setting("cups").text, "2");
  EXPECT_EQ(config.setting("svg").text, "a b#c = d");
  EXPECT_EQ(config.setting("kind").text, "");
  EXPECT_EQ(config.setting("kind").line, 5U);
}

TEST(Config, NamesTheLineOfABadFile) {
  EXPECT_EQ(file_refusal("cups = 2\ncusp = 3"), "tea.conf line 2: unknown name cusp (hint: did you mean cups?)");
  EXPECT_EQ(file_refusal("sugar = 3"), "tea.conf line 1: unknown name sugar");
  EXPECT_EQ(file_refusal("\n\ncups 3"), "tea.conf line 3: expected name = value, got 'cups 3'");
  EXPECT_EQ(file_refusal("= 3"), "tea.conf line 1: expected name = value, got '= 3'");
  EXPECT_EQ(file_refusal("cups = 2\n\ncups = 2"), "tea.conf line 3: cups is already set on line 1");
  EXPECT_EQ(file_refusal("config = other.conf"), "tea.conf line 1: a file cannot name another file");
  EXPECT_EQ(file_refusal("EVERSTEP_CUPS = 2"), "tea.conf line 1: unknown name EVERSTEP_CUPS");
}

TEST(Config, RefusesUnknownVariables) {
  EXPECT_EQ(refused_sources({.args = {}, .environment = {{"EVERSTEP_CUSP", "2"}}}),
            "unknown environment variable EVERSTEP_CUSP (hint: did you mean EVERSTEP_CUPS?)");
  EXPECT_EQ(refused_sources({.args = {}, .environment = {{"EVERSTEP_", "2"}}}),
            "unknown environment variable EVERSTEP_");
  EXPECT_EQ(refused_sources({.args = {}, .environment = {{"HOME", "/"}, {"EVERSTEPS", "2"}, {"cups", "3"}}}),
            "accepted");
}

TEST(Config, IgnoresTheOptionsOfOtherCommands) {
  EXPECT_EQ(refused_sources({.args = {},
                             .environment = {{"EVERSTEP_DEPTH", "8"}},
                             .file = ConfigFile{"tea.conf", "depth = 4"},
                             .other_options = {{.name = "depth"}}}),
            "accepted");
}

TEST(Config, KnowsWhatANameIsCalledElsewhere) {
  CommandSpec spec = toy_spec();
  spec.options.front().called_elsewhere = {"mugs"};
  const auto refusal_of = [&](const ConfigSources& sources) { return merge_config(spec, sources).error().line(); };
  EXPECT_EQ(refusal_of({.args = {}, .environment = {{"EVERSTEP_MUGS", "2"}}}),
            "unknown environment variable EVERSTEP_MUGS (hint: did you mean EVERSTEP_CUPS?)");
  EXPECT_EQ(refusal_of({.args = {}, .file = ConfigFile{"tea.conf", "mugs = 2"}}),
            "tea.conf line 1: unknown name mugs (hint: did you mean cups?)");
}

TEST(Config, ShowsAValueAsItsOwnerWroteIt) {
  const Config config = merged({.args = {.values = {{"cups", "2"}}},
                                .environment = {{"EVERSTEP_KIND", "red"}},
                                .file = ConfigFile{"tea.conf", "\nsvg = x"}});
  EXPECT_EQ(config.shown("cups"), "--cups=2");
  EXPECT_EQ(config.shown("kind"), "EVERSTEP_KIND=red");
  EXPECT_EQ(config.shown("svg"), "tea.conf line 2: svg = x");
  EXPECT_EQ(config.shown("memory-gib"), "--memory-gib=40 (default)");
  EXPECT_EQ(config.shown("config"), "--config");
}

TEST(Config, RejectsWithTheExitCodeOfTheSource) {
  const Config config = merged({.args = {.values = {{"cups", "2"}}},
                                .environment = {{"EVERSTEP_KIND", "red"}},
                                .file = ConfigFile{"tea.conf", "svg = x"}});
  EXPECT_EQ(config.reject("cups", "too few", "buy more"),
            Failure(invalid_argument("--cups=2: too few", "buy more"), ExitCode::kUsage));
  EXPECT_EQ(config.reject("kind", "no tea"),
            Failure(invalid_argument("EVERSTEP_KIND=red: no tea"), ExitCode::kConfiguration));
  EXPECT_EQ(config.reject("svg", "bad").exit_code, ExitCode::kConfiguration);
  EXPECT_EQ(config.blame("cups", not_found("no cup")), Failure(not_found("no cup"), ExitCode::kUsage));
  EXPECT_EQ(config.blame("svg", not_found("no cup")).exit_code, ExitCode::kConfiguration);
  EXPECT_EQ(config.blame("cups", {ErrorCode::kUnavailable, "full", ""}).exit_code, ExitCode::kUnreachable);
}

TEST(Config, FindsItsFileInFlagAndEnvironment) {
  EXPECT_EQ(config_file_path({}, {}), std::nullopt);
  EXPECT_EQ(config_file_path({}, {{"EVERSTEP_CONFIG", "e"}}), "e");
  EXPECT_EQ(config_file_path({.values = {{"config", "f"}}}, {{"EVERSTEP_CONFIG", "e"}}), "f");
}

TEST(PrintConfig, NamesEachValueAndItsSource) {
  EXPECT_EQ(print_config(merged({.args = {.values = {{"cups", "2"}, {"print-config", "true"}}},
                                 .environment = {{"EVERSTEP_KIND", "black"}},
                                 .file = ConfigFile{"tea.conf", "\njson = true"}})),
            "cups         = 2      # --cups\n"
            "memory-gib   = 40     # default\n"
            "kind         = black  # EVERSTEP_KIND\n"
            "# svg is not set\n"
            "json         = true   # tea.conf line 2\n");
}

TEST(PrintConfig, CanBeReadBackAsAFile) {
  const Config first = merged({.args = {.values = {{"cups", "2"}, {"svg", "a=b.svg"}}}});
  const Config second = merged({.args = {}, .file = ConfigFile{"printed.conf", print_config(first)}});
  for (const Setting& setting : first.settings) EXPECT_EQ(second.setting(setting.name).text, setting.text);
}

TEST(ConfigDeathTest, KnowsOnlyTheOptionsOfItsCommand) {
  const Config config = merged({});
  EXPECT_DEATH(static_cast<void>(config.setting("sugar")), "everstep brew has no option --sugar");
}

TEST(MergeConfig, TakesFilesToWriteFromTheCommandLineOnly) {
  CommandSpec spec;
  spec.name = "draw";
  spec.options = {{.name = "svg", .value_name = "FILE", .help = "picture", .command_line_only = true}};
  ConfigSources sources;
  sources.environment = {{"EVERSTEP_SVG", "precious"}};
  sources.file = ConfigFile{"everstep.conf", "svg = precious\n"};
  const auto elsewhere = merge_config(spec, sources);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.error();
  EXPECT_FALSE(elsewhere->is_set("svg"));
  EXPECT_EQ(elsewhere->ignored, (std::vector<std::string>{"EVERSTEP_SVG=precious"}));
  sources.args.values["svg"] = "mine";
  EXPECT_EQ(merge_config(spec, sources)->setting("svg").text, "mine");
  EXPECT_TRUE(merge_config(spec, sources)->ignored.empty()) << "what the command line says wins anyway";
}

}  // namespace
}  // namespace everstep::launcher
