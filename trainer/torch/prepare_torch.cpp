#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include "trainer/torch/amx.h"
#include "trainer/torch/caching_allocator.h"
#include "trainer/torch/torch_stage.h"
#include "trainer/torch/wide_product.h"

namespace everstep::trainer {
namespace {

// Never freed: tensors of static storage may outlive main().
CachingAllocator& allocator() {
  static auto* const made = new CachingAllocator;
  return *made;
}

}  // namespace

void prepare_torch(int threads) {
  avoid_amx_that_would_crash();
  c10::SetCPUAllocator(&allocator());
  at::set_num_threads(threads);
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);  // may be set once only
  c10::GradMode::set_enabled(false);
}

void forget_freed_tensors() { allocator().forget(); }

const char* cpu_capability() {
  static const std::string capability = at::get_cpu_capability() + (has_wide_product() ? "+wide" : "");
  return capability.c_str();
}

const char* torch_version() { return TORCH_VERSION; }

}  // namespace everstep::trainer
