#pragma once

#include <string>
#include <vector>

namespace everstep::launcher {

enum class Align { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kLeft;

  bool operator==(const Column&) const = default;
};

// A table for people: headers, a rule, rows. Each row has one cell per column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;

  bool operator==(const Table&) const = default;
};

// The table with columns as wide as their widest cell, two blanks between them and none at the end of a line. Cells are
// UTF-8; each code point counts as one column wide.
std::string to_text(const Table& table);

}  // namespace everstep::launcher
