#include "trainer/cuda/cuda_devices.h"

#include <gmock/gmock.h>

namespace everstep::trainer::cuda {
namespace {

using testing::HasSubstr;

TEST(CudaDevices, AreRefusedInOneLineThatSaysWhy) {
  EXPECT_EQ(no_gpu("CUDA driver version is insufficient", true, 0, 13000).message,
            "no GPU was found: there is no NVIDIA driver");
  EXPECT_EQ(no_gpu("CUDA driver version is insufficient", true, 12040, 13000).message,
            "the NVIDIA driver is too old: it has CUDA 12.4, and this build needs 13.0");
  EXPECT_EQ(no_gpu("no CUDA-capable device is detected", false, 13000, 13000).message,
            "no GPU was found: no CUDA-capable device is detected");
}

// By CUDA's own runtime. A host that has GPUs lists them.
TEST(CudaDevices, AreListedOrRefusedByTheRuntime) {
  const auto gpus = cuda_devices().list();
  if (gpus) {
    for (const DeviceFacts& gpu : *gpus) EXPECT_GT(gpu.memory_bytes, 0) << gpu.name;
  } else {
    EXPECT_EQ(gpus.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(gpus.error().message, HasSubstr("no GPU was found"));
    EXPECT_NE(gpus.error().hint, "");
  }
}

}  // namespace
}  // namespace everstep::trainer::cuda
