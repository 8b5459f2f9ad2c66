#pragma once

#include "trainer/model/device_kind.h"

namespace everstep::trainer::cuda {

// What CUDA's runtime tells about its GPUs, those of CUDA_VISIBLE_DEVICES if it is set.
DeviceKind cuda_devices();

// Why there is no GPU to use, in one line. `error` is what cudaGetDeviceCount said, in CUDA's words; versions are as
// CUDA has them: 13000 for 13.0; 0: there is no driver.
Error no_gpu(const std::string& error, bool is_driver_too_old, int driver_version, int runtime_version);

// "13.0" for 13000.
std::string version_text(int version);

}  // namespace everstep::trainer::cuda
