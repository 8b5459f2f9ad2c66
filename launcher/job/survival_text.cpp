#include "launcher/job/survival_text.h"

namespace everstep::launcher {
namespace {

std::string count(int number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& names) {
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) text.append(i + 1 == names.size() ? " and " : ", ").append(names[i]);
  return text;
}

}  // namespace

std::string survival_text(const scheduler::Survival& survives, const std::vector<std::string>& too_many) {
  if (survives.workers == 0) return "no loss without going back to a checkpoint";
  const std::string hosts = survives.hosts > 0 ? ", any " + count(survives.hosts, "host") : ", but no whole host";
  return "any " + count(survives.workers, "worker") + hosts + ", lost at once, without touching disk; workers " +
         listed(too_many) + " at once would be too many";
}

}  // namespace everstep::launcher
