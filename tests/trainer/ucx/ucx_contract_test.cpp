#include <gtest/gtest.h>

#include "tests/trainer/transport_contract.h"
#include "tests/trainer/ucx/loopback_workers.h"

namespace everstep::trainer {
namespace {

INSTANTIATE_TEST_SUITE_P(Ucx, TransportContract, testing::Values(TransportMaker{"InOneProcess", make_ucx_transports}),
                         maker_name);

}  // namespace
}  // namespace everstep::trainer
