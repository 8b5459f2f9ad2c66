#include "launcher/cli/nearest.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace everstep::launcher {
namespace {

// How many letters must be changed, added, removed or swapped with their neighbour to turn one word into the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> cost(from.size() + 1, std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t changed = from[i - 1] == to[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost.back().back();
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return {};
  std::string best;
  std::size_t limit = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(word, name);
    // As many changes as letters would turn anything into anything.
    if (distance >= std::min(limit, word.size())) continue;
    best = name;
    limit = distance;
  }
  if (!best.empty() || word.size() < 2) return best;
  const auto begins_with_word = [word](const std::string& name) { return name.starts_with(word); };
  if (std::ranges::count_if(names, begins_with_word) != 1) return {};
  return *std::ranges::find_if(names, begins_with_word);
}

std::string did_you_mean(const std::vector<std::string>& names) {
  return names.empty() ? std::string() : "did you mean " + either_of(names) + "?";
}

std::string did_you_mean(const std::string& name) {
  return name.empty() ? std::string() : did_you_mean(std::vector<std::string>{name});
}

std::string comma_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace everstep::launcher
