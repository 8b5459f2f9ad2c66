#pragma once

#include <exception>
#include <utility>

#include "base/result.h"

namespace everstep::trainer {

// What the exception comes to for whoever can go on without the work it ended.
Error error_of(const std::exception_ptr& exception);

// Calls `work`, which returns a Result or Status; what it throws becomes an error. For threads beside the training,
// whose failures (no memory, no thread to be had) must cost a checkpoint at most.
template <typename Work>
auto caught(Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    return error_of(std::current_exception());
  }
}

}  // namespace everstep::trainer
