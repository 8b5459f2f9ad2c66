#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scheduler/profile.h"

namespace everstep::scheduler {

enum class ModelFamily { kGpt, kBert };

// A transformer by its sizes. Blocks: the embedding, `layers` transformer blocks, the head.
struct ModelShape {
  std::string name;
  ModelFamily family = ModelFamily::kGpt;
  int layers = 1;
  int hidden = 64;
  int heads = 1;
  int sequence = 64;
  int vocabulary = 256;

  bool operator==(const ModelShape&) const = default;
};

// The shapes known by name: GPT-2's and BERT's published sizes, the two models of the AMDP paper (whose GPT is GPT-2
// XL), and a tiny one of each for tests.
const std::vector<ModelShape>& named_models();
Result<ModelShape> find_model(std::string_view name);

struct ProfileOptions {
  int minibatch = 4;                      // sequences
  double flops_per_second = 100e12;       // what one worker reaches, not what its data sheet says
  double backward_ratio = 2.0;            // backward time over forward time
  std::int64_t bytes_per_activation = 2;  // 2 = bf16, 4 = fp32
};

// Estimates a profile from the sizes: 24 h² + 4 s h multiply-adds and additions per token and block, 2 h V for the
// head, and 17 kept numbers per token and hidden unit and block (fused attention; Korthikanti et al., 2022). The
// gradients of a block's weights take 24 h² of its backward. A measured profile is better where one exists.
ModelProfile estimate_profile(const ModelShape& shape, const ProfileOptions& options = {});

}  // namespace everstep::scheduler
