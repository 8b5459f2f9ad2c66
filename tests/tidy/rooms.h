#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "tests/tidy/tidy_rules.h"

namespace everstep::tidy {

enum class RoomKind {
  kCore,     // decides and never acts
  kAdapter,  // a foreign library or the operating system, behind a port: only launcher includes it
  kShell,    // launcher
};

// A folder of the product, and the rooms that it may include besides itself. What is deeper inside a room belongs to
// it; but a top folder's room is what lies flat in it.
struct Room {
  std::string_view name;
  RoomKind kind = RoomKind::kCore;
  std::set<std::string_view> may_include{};
};

// Where things are: one row per room.
const std::vector<Room>& rooms();

// The one that this file is in; nullptr: none.
const Room* room_of(const SourceFile& file);

// What is wrong with such a table: rooms that may include each other, directly or by way of others; names that it does
// not know; adapters that others than launcher may include.
Violations check_rooms(const std::vector<Room>& table);

}  // namespace everstep::tidy
