#pragma once

#include <string>

#include "base/result.h"
#include "launcher/doctor/place.h"
#include "storage/json/json.h"

namespace everstep::launcher::doctor {

// Asks `everstep-worker doctor` for a part (launcher/worker/doctor/doctor_role.h). Its log is log_of(place, part).
// kNotFound: the answer is that something is missing, such as a device. kCancelled: a signal asked us to stop. Else the
// error says how the program ended.
Result<storage::Json> ask(const Place& place, const std::string& part);

std::filesystem::path log_of(const Place& place, const std::string& part);

}  // namespace everstep::launcher::doctor
