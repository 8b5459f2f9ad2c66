#include "launcher/cli/table.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"

namespace everstep::launcher {
namespace {

std::size_t width_of(std::string_view cell) {
  const auto starts_a_code_point = [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; };
  return static_cast<std::size_t>(std::ranges::count_if(cell, starts_a_code_point));
}

constexpr std::string_view kGap = "  ";

using Chosen = std::vector<std::size_t>;  // columns, by their places

std::string line_of(const Table& table, const Chosen& chosen, const std::vector<std::size_t>& widths,
                    const std::vector<std::string>& cells) {
  std::string line;
  for (const std::size_t i : chosen) {
    const std::string padding(widths[i] - width_of(cells[i]), ' ');
    if (i != chosen.front()) line += kGap;
    line += table.columns[i].align == Align::kRight ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Which columns stand beside each other.
std::vector<Chosen> parts_of(const Table& table, const std::vector<std::size_t>& widths, std::size_t most) {
  Chosen key;
  std::size_t key_width = 0;
  for (std::size_t i = 0; i < std::min(table.key_columns, widths.size()); ++i) {
    key.push_back(i);
    key_width += widths[i] + (i > 0 ? kGap.size() : 0);
  }
  std::vector<Chosen> parts{key};
  std::size_t width = key_width;
  for (std::size_t i = key.size(); i < widths.size(); ++i) {
    const bool is_full = most > 0 && width + kGap.size() + widths[i] > most && parts.back().size() > key.size();
    if (is_full) {
      parts.push_back(key);
      width = key_width;
    }
    parts.back().push_back(i);
    width += kGap.size() + widths[i];
  }
  return parts;
}

}  // namespace

std::string to_text(const Table& table, std::size_t most) {
  std::vector<std::string> headers;
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) {
    headers.push_back(column.header);
    widths.push_back(width_of(column.header));
  }
  for (const auto& row : table.rows) {
    EVERSTEP_CHECK(row.size() == widths.size(), "a row must have one cell per column");
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::vector<std::string> rule;
  rule.reserve(widths.size());
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  std::string text;
  for (const Chosen& part : parts_of(table, widths, most)) {
    text += text.empty() ? "" : "\n";
    text += line_of(table, part, widths, headers) + line_of(table, part, widths, rule);
    for (const auto& row : table.rows) text += line_of(table, part, widths, row);
  }
  return text;
}

}  // namespace everstep::launcher
