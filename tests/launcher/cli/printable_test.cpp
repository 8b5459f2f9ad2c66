#include "launcher/cli/printable.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "w3 on node-1.example.org", "größer als 3 ✓ 日本語 😀", "~!@#$%^&*()_+|"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, HasNoControlCharacters) {
  EXPECT_EQ(printable("\x1b[2Ja\nb\tc\rd\x7f"), "?[2Ja?b?c?d?");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("\u009b31m"), "?31m") << "the one-byte form of ESC [";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m")
      << "as one byte";
  EXPECT_EQ(printable("\u0080\u009f\u00a0"), "??\u00a0") << "the last of them, and the first that is none";
  EXPECT_EQ(printable("\u202egnp.exe"), "?gnp.exe") << "written backwards";
}

TEST(Printable, HasNothingThatIsNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("a\xc3"), "a?") << "cut short";
  EXPECT_EQ(printable("\xc0\xafz"), "??z") << "longer than needed";
  EXPECT_EQ(printable("\xe0\x9b\xbf"), "???") << "longer than needed";
  EXPECT_EQ(printable("\xed\xa0\x80"), "???") << "half of a pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????") << "beyond the last one";
}

}  // namespace
}  // namespace everstep::launcher
