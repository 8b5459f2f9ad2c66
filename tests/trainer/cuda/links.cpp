// That this links is the test: nothing can be run without a GPU's driver. With one, it says how many GPUs there are.
#include <iostream>

#include <c10/cuda/CUDAFunctions.h>

#include "trainer/torch/torch_stage.h"

int main() {
  everstep::trainer::prepare_torch(1);
  std::cout << "LibTorch " << everstep::trainer::torch_version() << " finds " << int{c10::cuda::device_count()}
            << " GPUs\n";
  return 0;
}
