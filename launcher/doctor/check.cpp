#include "launcher/doctor/check.h"

#include <utility>

namespace everstep::launcher::doctor {

std::string_view to_string(Health health) {
  switch (health) {
    case Health::kPassed:
      return "passed";
    case Health::kFailed:
      return "FAILED";
    case Health::kNotChecked:
      break;
  }
  return "not checked";
}

Check checked(std::string name, std::string figure, std::string limit, std::string reason) {
  const Health health = reason.empty() ? Health::kPassed : Health::kFailed;
  return {std::move(name), health, std::move(figure), std::move(limit), std::move(reason)};
}

Check failed(std::string name, std::string reason) {
  return {.name = std::move(name), .health = Health::kFailed, .reason = std::move(reason)};
}

Check not_checked(std::string name, std::string reason) {
  return {.name = std::move(name), .health = Health::kNotChecked, .reason = std::move(reason)};
}

}  // namespace everstep::launcher::doctor
