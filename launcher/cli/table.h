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
  std::size_t key_columns = 1;  // the first ones, which say what a row is about

  bool operator==(const Table&) const = default;
};

// The table with columns as wide as their widest cell, two blanks between them and none at the end of a line. Cells are
// UTF-8; each code point counts as one column wide. What is wider than `most` (0: nothing is) becomes several tables
// below each other, each with the key columns: a terminal would break every row otherwise. A column that does not fit
// beside the key stays whole.
std::string to_text(const Table& table, std::size_t most = 0);

}  // namespace everstep::launcher
