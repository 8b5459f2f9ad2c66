#pragma once

#include <cstdint>
#include <string>

#include <c10/core/Device.h>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/options.h"

namespace everstep::accelerator {

// Makes LibTorch's PrivateUse1 device the fake accelerator, called "fake", in this process; once, before the first
// tensor on it. From then on:
// - every operator, also those of the project, runs the CPU's kernel on the current stream, so that bits are the CPU's;
// - c10::Stream, c10::Event, the device guard and record_stream() work as on CUDA; streams of the pool repeat after 32;
// - pinned memory is what at::TensorOptions().pinned_memory(true) and Tensor::pin_memory() make;
// - whatever needs a number on the host counts as a wait: item(), nonzero(), _unique2(), equal(), copies that do not
//   say non_blocking, and all copies from or to memory that is not pinned.
// A kernel keeps nothing alive. Tensors of the host, other than single numbers, are refused where CUDA refuses them.
void register_fake_accelerator(const Options& options = {});

// After register_fake_accelerator().
c10::Device fake_device();        // "fake:0"
Accelerator& fake_accelerator();  // which lives until the process ends

// All mistakes since the last report, a line each; empty if there was none. With OnMistake::kRecord only: otherwise the
// first one has ended the process.
std::string race_report();

// How often an operator ran on zeros to learn the shapes of its results: once for each combination of arguments.
std::int64_t dry_runs();

// Of the calling thread.
StreamId current_stream();

}  // namespace everstep::accelerator
