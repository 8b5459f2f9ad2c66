#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_runtime/null_cuda.h"
#include "tests/trainer/loop/all_workers.h"

namespace everstep::null_cuda {

// LibTorch's settings as the trainer has them. Gives back what LibTorch keeps of the GPUs' memory, so that a run begins
// as in a process of its own.
void prepare_gpus();

// The same run on GPUs, worker i on GPU i: with streams of its own, and frames that go through pinned memory. Weights
// are neither initialised nor looked at.
trainer::RunChanges on_gpus(const trainer::RunChanges& changes = {});

// What a worker's training thread did between two updates, and in the second one.
struct WindowUse {
  Counts inside;  // forwards, backwards, and all between two ops
  Counts at_update;
  std::string waited_in;  // the last wait inside
};

// By worker and window.
using UseOfGpus = std::vector<std::vector<WindowUse>>;

// Adds the counting to the hooks; `use` must outlive the run.
trainer::RunChanges counting_use(const trainer::RunChanges& changes, int workers, UseOfGpus& use);

// What breaks the rules of a steady state, in one line; empty: nothing. They are: no wait inside a window from the
// second one on, and one at an update; no cudaMalloc from the third one on.
std::string wrong_waits(const UseOfGpus& use);
std::string wrong_allocations(const UseOfGpus& use);

}  // namespace everstep::null_cuda
