// What LibTorch asks of the driver's library, libcuda.so.1, itself.
#include <cuda.h>

extern "C" {

// Before it goes back to a GPU, LibTorch asks whether this would be the first use of it.
CUresult cuDevicePrimaryCtxGetState(CUdevice /*device*/, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

// Before it calls cuBLAS, it asks whether the thread has one.
CUresult cuCtxGetCurrent(CUcontext* context) {
  static char any = 0;
  *context = reinterpret_cast<CUcontext>(&any);
  return CUDA_SUCCESS;
}

}  // extern "C"
