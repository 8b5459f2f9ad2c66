#include "launcher/rehearse/chaos/promise.h"

#include <array>
#include <cstddef>

namespace everstep::launcher::chaos {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

std::string_view to_string(Promise promise) {
  constexpr std::array<std::string_view, 8> kNames{"LIVE",  "NOHANG",  "FENCE", "ONCE",
                                                   "CHAIN", "RESTORE", "BITS",  "BOUND"};
  return kNames.at(static_cast<std::size_t>(promise));
}

std::string to_text(const Finding& finding) {
  constexpr std::size_t kWidth = 8;
  return padded(std::string(to_string(finding.promise)), kWidth) + padded(finding.holds ? "holds" : "BROKEN", kWidth) +
         finding.text;
}

Finding judge(Promise promise, const std::vector<std::string>& wrong, const std::string& seen) {
  if (wrong.empty()) return {promise, true, seen};
  std::string text;
  for (const std::string& one : wrong) text.append(text.empty() ? "" : "; ").append(one);
  return {promise, false, text};
}

}  // namespace everstep::launcher::chaos
