#include "launcher/table.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"

namespace everstep::launcher {
namespace {

std::size_t width_of(std::string_view cell) {
  const auto starts_a_code_point = [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; };
  return static_cast<std::size_t>(std::ranges::count_if(cell, starts_a_code_point));
}

std::string line_of(const Table& table, const std::vector<std::size_t>& widths, const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - width_of(cells[i]), ' ');
    if (i > 0) line += "  ";
    line += table.columns[i].align == Align::kRight ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string to_text(const Table& table) {
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
  std::string text = line_of(table, widths, headers) + line_of(table, widths, rule);
  for (const auto& row : table.rows) text += line_of(table, widths, row);
  return text;
}

}  // namespace everstep::launcher
