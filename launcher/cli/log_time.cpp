#include "launcher/cli/log_time.h"

#include <chrono>

namespace everstep::launcher {
namespace {

// Decimal digits, the last one at `end`.
void write_digits(char* end, std::int64_t number, int count) {
  for (int i = 0; i < count; ++i, number /= 10) *end-- = static_cast<char>('0' + number % 10);
}

}  // namespace

std::string_view write_log_time(std::int64_t milliseconds, std::array<char, kLogTimeSize>& room) {
  using std::chrono::days;
  constexpr std::string_view kForm = "time=0000-00-00T00:00:00.000Z ";
  static_assert(kForm.size() == kLogTimeSize);
  constexpr std::int64_t kPerDay = 86'400'000;
  const std::int64_t day = milliseconds / kPerDay;
  const std::int64_t in_day = milliseconds % kPerDay;
  const std::chrono::year_month_day date{std::chrono::sys_days(days(day))};
  kForm.copy(room.data(), room.size());
  char* text = room.data();
  write_digits(text + 8, static_cast<int>(date.year()), 4);
  write_digits(text + 11, static_cast<unsigned>(date.month()), 2);
  write_digits(text + 14, static_cast<unsigned>(date.day()), 2);
  write_digits(text + 17, in_day / 3'600'000, 2);
  write_digits(text + 20, in_day / 60'000 % 60, 2);
  write_digits(text + 23, in_day / 1000 % 60, 2);
  write_digits(text + 27, in_day % 1000, 3);
  return {room.data(), room.size()};
}

std::int64_t wall_clock_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string log_time() {
  std::array<char, kLogTimeSize> room{};
  return std::string(write_log_time(wall_clock_ms(), room));
}

}  // namespace everstep::launcher
