#pragma once

#include <string>

namespace everstep::trainer {

// From now on UCX does not print, in this whole process. Its default way to log would also end the process: in an
// engine without error handling a copy from a peer that has just died is logged as fatal, although the transfer fails
// properly.
void keep_ucx_quiet();

// The last warning or error that UCX had for this thread, or nothing.
std::string take_ucx_complaint();

}  // namespace everstep::trainer
