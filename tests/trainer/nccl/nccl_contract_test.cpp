// What every transport promises, of frames that go by NCCL, on as many hardware queues as a GPU has and on one.
#include <gtest/gtest.h>

#include "tests/trainer/nccl/nccl_workers.h"
#include "tests/trainer/wire/transport_contract.h"

namespace everstep::trainer {
namespace {

TransportMaker with_queues(const std::string& name, int hardware_queues) {
  return {
      name,
      [hardware_queues](int workers) { return make_nccl_transports(workers, {.hardware_queues = hardware_queues}); },
      true, static_cast<int>(Channel::kCredits)};
}

INSTANTIATE_TEST_SUITE_P(Nccl, TransportContract,
                         testing::Values(with_queues("OneQueue", 1), with_queues("ManyQueues", 32)), maker_name);

}  // namespace
}  // namespace everstep::trainer
