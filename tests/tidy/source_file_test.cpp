#include "tests/tidy/source_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::tidy {
namespace {

TEST(SourceFile, KnowsItsNameDirectoryAndFolder) {
  const SourceFile nested{"storage/json/json_text.h", {}};
  EXPECT_EQ(nested.name(), "json_text.h");
  EXPECT_EQ(nested.directory(), "storage/json");
  EXPECT_EQ(nested.folder(), "storage");

  const SourceFile at_the_root{"README.md", {}};
  EXPECT_EQ(at_the_root.name(), "README.md");
  EXPECT_EQ(at_the_root.directory(), "");
  EXPECT_EQ(at_the_root.folder(), "");
}

TEST(SourceFile, IncludesAreFoundWithTheirLines) {
  const auto includes =
      includes_of({"base/a.h", "#pragma once\n#include <vector>\n  #  include \"base/b.h\"  // why\n"});
  ASSERT_EQ(includes.size(), 2U);
  EXPECT_EQ(includes[0].line, 2);
  EXPECT_TRUE(includes[0].angled);
  EXPECT_EQ(includes[0].path, "vector");
  EXPECT_EQ(includes[1].line, 3);
  EXPECT_FALSE(includes[1].angled);
  EXPECT_EQ(includes[1].path, "base/b.h");
}

TEST(SourceFile, CodeOnlyHidesCommentsAndLiteralsAndKeepsLines) {
  EXPECT_EQ(code_only("int a; // b\nint c; /* d\ne */ f"), "int a;     \nint c;     \n     f");
  EXPECT_EQ(code_only(R"(x("a\"b", 'c', '\'') + y)"), "x(      ,    ,     ) + y");
  EXPECT_EQ(code_only("int n = 1'000'000; char c = 'x';"), "int n = 1'000'000; char c =    ;");
  EXPECT_EQ(code_only("f(R\"--(a\n)\" b)--\" + c)"), "f(      \n         + c)");
}

TEST(SourceFile, CodeOnlySurvivesWhatNeverEnds) {
  EXPECT_EQ(code_only("a \"b"), "a   ");
  EXPECT_EQ(code_only("a /* b"), "a     ");
  EXPECT_EQ(code_only("a R\"x"), "a    ");
  EXPECT_EQ(code_only("a 'b\\"), "a    ");
}

}  // namespace
}  // namespace everstep::tidy
