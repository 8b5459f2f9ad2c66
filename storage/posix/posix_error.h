#pragma once

#include <string>

#include "base/result.h"

namespace everstep::storage {

// What a system call's errno means for whoever asked: "cannot write '/x/y': No space left on device", with a hint.
Error system_error(const std::string& action, const std::string& path, int number);

}  // namespace everstep::storage
