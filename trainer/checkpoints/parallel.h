#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace everstep::trainer {

// How many threads one of so many workers on this host may use for files beside its training: at least 1, at most 4.
int file_threads(int workers);

// Calls `task` for 0 … count - 1, each once, on up to so many threads (the caller's is one of them), fewer if the
// system has no more. After the first failure, which is returned, no further ones are started; what a task throws is
// one.
Status for_each_in_parallel(std::size_t count, int threads, const std::function<Status(std::size_t)>& task);

}  // namespace everstep::trainer
