#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tidy/tidy_rules.h"

namespace everstep::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kPage = "Run `scripts/test`, then `scripts/demo`.\n";

SourceFile script(const std::string& name) {
  const std::string path = "scripts/" + name;
  return {path, "#!/bin/bash\n# Usage: " + path + "\nhelp_or_refuse\n", true};
}

// A small tree that obeys every rule, for each test to break in one way.
std::vector<SourceFile> good_tree() {
  return {{"CONTRIBUTING.md", kPage},
          {"README.md", kPage},
          {"base/CMakeLists.txt", "everstep_library(base SOURCES ids.cpp)\n"},
          {"base/ids.cpp", "int a;\n"},
          script("demo"),
          script("test")};
}

std::vector<std::string> complaints(const std::vector<SourceFile>& files) {
  std::vector<std::string> lines;
  for (const Violation& violation : check_all(files)) {
    std::ostringstream line;
    line << violation;
    lines.push_back(line.str());
  }
  return lines;
}

TEST(Tree, ThatObeysHasNoComplaints) { EXPECT_THAT(complaints(good_tree()), IsEmpty()); }

TEST(Tree, ComplaintsReadLikeACompilersMessage) {
  auto files = good_tree();
  files.push_back({"base/a.h", "#pragma once\n\n#include <thread>\n"});
  EXPECT_THAT(complaints(files),
              ElementsAre("base/a.h:3: <thread> has no place in a core file (hint: threads belong to launcher and to "
                          "adapters; a core is a plain function or class)"));
}

TEST(Tree, KeepsBaseSmall) {
  auto files = good_tree();
  for (char name = 'a'; name <= 'j'; ++name) files.push_back({std::string("base/") + name + ".h", "#pragma once\n"});
  EXPECT_THAT(complaints(files), IsEmpty());
  files.push_back({"base/version.h.in", "#pragma once\n"});
  EXPECT_THAT(complaints(files),
              ElementsAre("base: 11 headers, more than 10 (hint: move what one folder uses into that folder)"));
}

TEST(Tree, BuildsEverySource) {
  auto files = good_tree();
  files.push_back({"storage/json/ids.cpp", "int b;\n"});
  EXPECT_THAT(complaints(files), ElementsAre("storage/json/ids.cpp: no target builds it (hint: name it in the "
                                             "CMakeLists.txt of its folder)"));
  files.push_back({"storage/json/CMakeLists.txt", "everstep_library(storage_json\n  SOURCES\n    ids.cpp)\n"});
  EXPECT_THAT(complaints(files), IsEmpty());
}

TEST(Tree, HasTestsInItsMirrorImage) {
  auto files = good_tree();
  files.push_back({"tests/base/CMakeLists.txt", "everstep_test(base_test SOURCES ids_test.cpp any_name_test.cpp)\n"});
  files.push_back({"tests/base/ids_test.cpp", "int a;\n"});
  files.push_back({"tests/base/any_name_test.cpp", "int a;\n"});
  files.push_back({"tests/temporary_directory.h", "#pragma once\n"});
  files.push_back({"tests/tidy/rules.h", "#pragma once\n"});
  EXPECT_THAT(complaints(files), IsEmpty());
  files.push_back({"tests/trainer/guard/helper.h", "#pragma once\n"});
  EXPECT_THAT(complaints(files),
              ElementsAre("tests/trainer/guard/helper.h: tests nothing that is there: no folder trainer/guard (hint: "
                          "tests stand in the mirror image of what they test)"));
}

TEST(Tree, HasTestsBesideWhatTheyAreNamedAfter) {
  auto files = good_tree();
  files.push_back({"trainer/wire/frame.h", "#pragma once\n"});
  files.push_back({"trainer/loop/worker.h", "#pragma once\n"});
  files.push_back(
      {"tests/trainer/CMakeLists.txt", "everstep_test(t SOURCES wire/frame_test.cpp loop/frame_test.cpp)\n"});
  files.push_back({"tests/trainer/wire/frame_test.cpp", "int a;\n"});
  EXPECT_THAT(complaints(files), IsEmpty());
  files.push_back({"tests/trainer/loop/frame_test.cpp", "int a;\n"});
  EXPECT_THAT(complaints(files),
              ElementsAre("tests/trainer/loop/frame_test.cpp: tests what is in trainer/wire (hint: move it to "
                          "tests/trainer/wire, or name it after what it tests)"));
}

TEST(Tree, HasScriptsThatRunAndExplainThemselves) {
  auto files = good_tree();
  files.push_back({"scripts/mute", "#!/bin/bash\n", false});
  EXPECT_THAT(
      complaints(files),
      ElementsAre(
          "scripts/mute: a script that is not executable (hint: chmod +x)",
          "scripts/mute: a script without --help (hint: describe it under 'Usage: scripts/mute' and answer --help "
          "with that)"));
}

TEST(Tree, HasPagesThatNameScriptsAsTheyAre) {
  auto files = good_tree();
  files[0].text = "Run `scripts/test`, `scripts/demo`, `scripts/gone`.\n";
  files[1].text = "Run `scripts/test`.\n";
  EXPECT_THAT(complaints(files),
              ElementsAre("README.md: does not name scripts/demo (hint: show it; it is one of the two first commands)",
                          "CONTRIBUTING.md: names scripts/gone, which is not there (hint: correct the page)"));
}

TEST(Tree, OfThisProjectObeysEveryRule) {
  const auto files = read_tree(EVERSTEP_SOURCE_DIR);
  EXPECT_GT(files.size(), 20U);
  for (const Violation& violation : check_all(files)) ADD_FAILURE() << violation;
}

}  // namespace
}  // namespace everstep::tidy
