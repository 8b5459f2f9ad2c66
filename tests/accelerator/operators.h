#pragma once

namespace everstep::accelerator {

// Teaches LibTorch's dispatcher to run the CPU's kernels on the fake device, on the current stream: for every operator
// that has no kernel for it, and for those that LibTorch would make of other operators although the CPU has a kernel of
// its own, with other bits.
void register_operators();

}  // namespace everstep::accelerator
