#pragma once

#include <functional>
#include <string>

namespace everstep::accelerator {

// Teaches LibTorch's dispatcher to run the CPU's kernels on the fake device, on the current stream: for every operator
// that has no kernel for it, and for those that LibTorch would make of other operators although the CPU has a kernel of
// its own, with other bits.
void register_operators();

// From now on what the operator of that name ("everstep::gelu_") writes first has one wrong bit, each time that
// `is_due` says so: for tests of who notices. Only of operators that return nothing, and before any of them runs.
void spoil_operator(const std::string& name, std::function<bool()> is_due);

}  // namespace everstep::accelerator
