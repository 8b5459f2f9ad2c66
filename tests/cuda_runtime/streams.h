#pragma once

#include <cuda_runtime_api.h>

namespace everstep::null_cuda {

// A stream gets one more thing to do; all that it was given is over. No stream means that of the thread's GPU.
void give_work(cudaStream_t stream);
void end_work(cudaStream_t stream);

// The same for all streams, those of other GPUs, too.
void end_all_work();

}  // namespace everstep::null_cuda
