#pragma once

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/doctor/place.h"

namespace everstep::launcher::doctor {

// A real job on real etcd loses a worker to SIGKILL: a rehearsal of `everstep chaos` with that one fault. kCancelled: a
// signal asked us to stop. Other errors say why there is no finding. Logs are in directory/recovery.
Result<Check> lose_a_worker(const Place& place);

}  // namespace everstep::launcher::doctor
