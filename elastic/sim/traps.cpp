#include "elastic/sim/traps.h"

#include <utility>

namespace everstep::elastic::sim {

void Traps::reached(Point point, Process& process) {
  for (std::size_t at = 0; at < traps_.size(); ++at) {
    if (traps_[at].point != point || --traps_[at].countdown > 0) continue;
    const Action action = std::move(traps_[at].action);
    traps_.erase(traps_.begin() + static_cast<std::ptrdiff_t>(at));
    return action(process);
  }
}

}  // namespace everstep::elastic::sim
