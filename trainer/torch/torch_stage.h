#pragma once

#include <memory>

#include "trainer/model/stage_compute.h"

namespace everstep::trainer {

// Fills the flat weights of a stage with their initial values, bit-equal on every replica.
void initialise_weights(const ModelConfig& config, const StageLayout& layout, const Buffer& weights);

// The same in fp32 whatever the model's precision: what an owner's master starts from.
void initialise_master(const ModelConfig& config, const StageLayout& layout, const Buffer& master);

// A stage on LibTorch's kernels, where the chunk's memory lies: on the host, or on the device of a TorchDeviceMemory.
std::unique_ptr<StageCompute> make_torch_stage(const StageRequest& request);

// Settings of the process, before any tensor exists: one thread per worker (bits repeat only with a fixed number), no
// gradient recording, an allocator that keeps freed blocks, no matrix unit that a virtual machine announces but hides.
void prepare_torch(int threads);

// Frees what that allocator keeps and nobody uses: another plan has tensors of other sizes.
void forget_freed_tensors();

// The vector instructions that LibTorch's kernels chose here ("AVX2"), with "+wide" if fp32 products are the project's
// own (wide_product.h): other ones may give other bits.
const char* cpu_capability();

// "2.1.0": of the LibTorch this was built with.
const char* torch_version();

}  // namespace everstep::trainer
