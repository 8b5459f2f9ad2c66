#include "scheduler/op.h"

#include <array>
#include <charconv>
#include <span>

#include "scheduler/op_text.h"

namespace everstep::scheduler {
namespace {

constexpr std::array<char, 8> kLetters{'F', 'B', 'R', 'C', 'U', 'W', 'P', 'T'};

// How each kind is written after its letter: the names of the numbers, joined by '.', with '@' before a stage.
std::string_view layout_of(OpKind kind) {
  constexpr std::array<std::string_view, 8> kLayouts{"wrms", "wrms", "ws", "wrs", "w", "wrms", "wrs", "wr"};
  return kLayouts[static_cast<std::size_t>(kind)];
}

std::int64_t field_of(const Op& op, char name) {
  switch (name) {
    case 'w':
      return op.window;
    case 'r':
      return op.round;
    case 'm':
      return op.minibatch;
    default:
      return op.stage;
  }
}

void set_field(Op& op, char name, std::int64_t value) {
  switch (name) {
    case 'w':
      op.window = value;
      break;
    case 'r':
      op.round = static_cast<int>(value);
      break;
    case 'm':
      op.minibatch = static_cast<int>(value);
      break;
    default:
      op.stage = static_cast<int>(value);
  }
}

char separator_before(char name) { return name == 's' ? '@' : '.'; }

}  // namespace

std::string_view write_text(const Op& op, std::span<char, kLongestOpText> room) {
  char* end = room.data();
  *end++ = kLetters[static_cast<std::size_t>(op.kind)];
  for (const char name : layout_of(op.kind)) {
    if (name != 'w') *end++ = separator_before(name);
    end = std::to_chars(end, room.data() + room.size(), field_of(op, name)).ptr;
  }
  return {room.data(), end};
}

std::string to_string(const Op& op) {
  std::array<char, kLongestOpText> room{};
  return std::string(write_text(op, room));
}

Result<Op> parse_op(std::string_view text) {
  const Error malformed = invalid_argument("'" + std::string(text) + "' is not an op", "for instance F0.1.3@2 or U0");
  if (text.empty()) return malformed;
  Op op;
  const std::string_view letters(kLetters.data(), kLetters.size());
  const std::size_t kind = letters.find(text.front());
  if (kind == std::string_view::npos) return malformed;
  op.kind = static_cast<OpKind>(kind);
  const char* cursor = text.data() + 1;
  const char* const end = text.data() + text.size();
  for (const char name : layout_of(op.kind)) {
    if (name != 'w' && (cursor == end || *cursor++ != separator_before(name))) return malformed;
    // Every field but the window is an int: a larger number is refused here, not wrapped.
    constexpr std::int64_t kLargestField = 1'000'000'000;
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(cursor, end, value);
    if (error != std::errc() || value < 0 || (name != 'w' && value > kLargestField)) return malformed;
    set_field(op, name, value);
    cursor = next;
  }
  if (cursor != end) return malformed;
  return op;
}

}  // namespace everstep::scheduler
