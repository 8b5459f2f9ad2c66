#pragma once

#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace everstep::elastic {

// Who has to go, given who suspects whom (suspected, by) and who has said something since:
//  * whoever is suspected and silent towards the store too: then the rest is blamed on it;
//  * else all but the largest set of workers none of which suspects another; of several, the one with the smallest
//    id. So both sides of a cut come to the same conclusion.
std::set<WorkerId> outcasts(const std::vector<WorkerId>& workers,
                            const std::set<std::pair<WorkerId, WorkerId>>& suspicions,
                            const std::set<WorkerId>& answered);

}  // namespace everstep::elastic
