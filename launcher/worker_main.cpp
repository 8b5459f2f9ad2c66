#include "launcher/worker_program.h"

#ifdef EVERSTEP_CUDA
#include "trainer/cuda/cuda_devices.h"
#include "trainer/nccl/nccl_api.h"
#include "trainer/torch/devices.h"
#endif

int main(int argc, char** argv) {
#ifdef EVERSTEP_CUDA
  everstep::trainer::add_device_kind(everstep::trainer::cuda::cuda_devices());
  everstep::trainer::add_nccl("cuda", everstep::trainer::real_nccl_api);
#endif
  return static_cast<int>(everstep::launcher::run_worker_program({argv + 1, argv + argc}));
}
