#include "base/log_line.h"

#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace everstep {
namespace {

std::string line_with(std::string_view value) { return LogLine("e").add("k", value).text(); }

// A reader as a log collector would write it: nothing if the line is not `key=value …` with bare or quoted values.
std::optional<std::vector<std::pair<std::string, std::string>>> read_logfmt(const std::string& line) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t equals = line.find('=', at);
    if (equals == std::string::npos) return std::nullopt;
    std::string value;
    std::size_t next = equals + 1;
    if (next < line.size() && line[next] == '"') {
      for (++next; next < line.size() && line[next] != '"'; ++next) {
        if (line[next] != '\\') {
          value += line[next];
        } else if (line[++next] == 'n') {
          value += '\n';
        } else if (line[next] == 'x') {
          value += static_cast<char>(std::strtol(line.substr(next + 1, 2).c_str(), nullptr, 16));
          next += 2;
        } else {
          value += line[next];
        }
      }
      if (next++ >= line.size()) return std::nullopt;
    } else {
      while (next < line.size() && line[next] != ' ') value += line[next++];
    }
    pairs.emplace_back(line.substr(at, equals - at), value);
    if (next < line.size() && line[next] != ' ') return std::nullopt;
    at = next + 1;
  }
  return pairs;
}

TEST(LogLine, StartsWithTheEventAndKeepsTheOrder) {
  EXPECT_EQ(LogLine("plan_chosen").add("depth", 8).add("reason", "fastest that fits").text(),
            "event=plan_chosen depth=8 reason=\"fastest that fits\"");
}

TEST(LogLine, WritesEveryKindOfValue) {
  LogLine line("e");
  line.add("a", std::string("text")).add("b", true).add("c", false).add("d", std::uint8_t{7});
  line.add("e", std::numeric_limits<std::int64_t>::min()).add("f", std::numeric_limits<std::uint64_t>::max());
  line.add("g", 0.1).add("h", -2.5e-300).add("i", 1.0f).add("j", std::numeric_limits<double>::infinity());
  EXPECT_EQ(line.text(),
            "event=e a=text b=true c=false d=7 e=-9223372036854775808 f=18446744073709551615 g=0.1 h=-2.5e-300 i=1 "
            "j=inf");
}

TEST(LogLine, WritesNumbersThatComeBackEqual) {
  EXPECT_TRUE(rc::check([](double value) {
    const std::string text = LogLine("e").add("k", value).text();
    RC_ASSERT(std::strtod(text.substr(text.rfind('=') + 1).c_str(), nullptr) == value);
  }));
}

TEST(LogLine, QuotesWhatAReaderWouldMisread) {
  EXPECT_EQ(line_with(""), "event=e k=\"\"");
  EXPECT_EQ(line_with("a b"), "event=e k=\"a b\"");
  EXPECT_EQ(line_with("a=b"), "event=e k=\"a=b\"");
  EXPECT_EQ(line_with("say \"hi\""), "event=e k=\"say \\\"hi\\\"\"");
  EXPECT_EQ(line_with("C:\\dir"), "event=e k=\"C:\\\\dir\"");
  EXPECT_EQ(line_with("größe"), "event=e k=größe");
}

TEST(LogLine, EscapesControlCharacters) {
  EXPECT_EQ(line_with("a\nb"), "event=e k=\"a\\nb\"");
  EXPECT_EQ(line_with("\r\t\x1b[31m"), "event=e k=\"\\x0d\\x09\\x1b[31m\"");
  EXPECT_EQ(line_with(std::string_view("\0\x7f", 2)), "event=e k=\"\\x00\\x7f\"");
}

TEST(LogLine, LetsNoControlCharacterThrough) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = line_with(std::string(1, static_cast<char>(byte)));
    for (const char c : text) EXPECT_TRUE(c >= ' ' && c < 0x7f) << "byte " << byte;
  }
}

// Terminals take them for ESC and a letter: U+009B begins a sequence as ESC [ does.
TEST(LogLine, EscapesControlCharactersOfEightBits) {
  EXPECT_EQ(line_with("\u009b31m"), "event=e k=\"\\xc2\\x9b31m\"");
  EXPECT_EQ(line_with("a\x9b"
                      "31m"),
            "event=e k=\"a\\x9b31m\"")
      << "as one byte";
  for (int low = 0x80; low < 0xA0; ++low) {
    EXPECT_EQ(line_with(std::string{'\xc2', static_cast<char>(low)}).find('\xc2'), std::string::npos) << low;
  }
  EXPECT_EQ(line_with("\u00a0 \u00e4"), "event=e k=\"\u00a0 \u00e4\"") << "the first that is none";
  EXPECT_EQ(line_with("\u202egnp.exe"), "event=e k=\"\\xe2\\x80\\xaegnp.exe\"") << "written backwards";
}

TEST(LogLine, IsOneLineFromWhichAReaderGetsTheValuesBack) {
  EXPECT_TRUE(rc::check([](const std::string& event, const std::vector<std::string>& values) {
    const auto nasty = *rc::gen::container<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::element('\n', '\r', '"', '\\', ' ', '=', 'n', 'x', '0', '\0')));
    LogLine line(event);
    std::vector<std::pair<std::string, std::string>> expected{{"event", event}};
    for (const auto& list : {values, nasty}) {
      for (const std::string& value : list) {
        line.add("key", value);
        expected.emplace_back("key", value);
      }
    }
    RC_ASSERT(line.text().find('\n') == std::string::npos);
    RC_ASSERT(line.text().find('\r') == std::string::npos);
    RC_ASSERT(read_logfmt(line.text()) == expected);
  }));
}

}  // namespace
}  // namespace everstep
