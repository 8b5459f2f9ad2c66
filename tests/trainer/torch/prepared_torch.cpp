// Linked into programs whose tests use LibTorch's blocks themselves: they run in a process that was prepared as a
// worker's is. Without that, a bf16 product would crash on some virtual machines (trainer/torch/amx.h).
#include <memory>

#include <gtest/gtest.h>

#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

class PreparedTorch final : public testing::Environment {
 public:
  void SetUp() override { prepare_torch(1); }
};

[[maybe_unused]] const testing::Environment* const kPreparedTorch =
    testing::AddGlobalTestEnvironment(std::make_unique<PreparedTorch>().release());

}  // namespace
}  // namespace everstep::trainer
