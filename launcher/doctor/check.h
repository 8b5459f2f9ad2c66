#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/json/json.h"

// What `everstep doctor` finds. Pure: acting is left to questions.h, training.h, recovery.h and host.h.
namespace everstep::launcher::doctor {

enum class Health : std::uint8_t {
  kPassed,
  kFailed,
  kNotChecked,  // this build or this host cannot: the reason says why
};

std::string_view to_string(Health health);  // "passed", "FAILED", "not checked"

struct LogTail {
  std::string file;
  std::string text;  // its end
};

// One row of the table.
struct Check {
  std::string name;  // "operators", "block gpt bf16"
  Health health = Health::kNotChecked;
  std::string figure{};  // what was seen
  std::string limit{};   // what it has to be; empty: there is none
  std::string reason{};  // unless it has passed
  storage::Json facts = storage::Json::object();
  double seconds = 0;           // that it took; of several checks that were made at once, the first one has them
  std::vector<LogTail> logs{};  // if it has failed
};

// One that has passed if there is no reason why not.
Check checked(std::string name, std::string figure, std::string limit, std::string reason);
Check failed(std::string name, std::string reason);
Check not_checked(std::string name, std::string reason);

}  // namespace everstep::launcher::doctor
