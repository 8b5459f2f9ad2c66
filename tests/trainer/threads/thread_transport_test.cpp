#include "trainer/threads/thread_transport.h"

#include <gtest/gtest.h>

#include "tests/trainer/wire/transport_contract.h"

namespace everstep::trainer {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Threads, TransportContract,
    testing::Values(TransportMaker{"AtOnce", [](int n) { return make_thread_transports(n); }},
                    TransportMaker{"Delayed",
                                   [](int n) { return make_thread_transports(n, {.longest = 300us, .seed = 1}); }}),
    maker_name);

TEST(ThreadTransport, RefusesAFrameWhoseBufferTheSenderChangedTooEarly) {
  const auto transports = make_thread_transports(2);
  FrameHeader header;
  header.length = 8;
  const Buffer payload = allocate_zeroed(8);
  transports[0]->send(1, Channel::kTensors, header, payload);
  payload.data[3] = std::byte{1};
  const ReceiveId receive = transports[1]->post_receive(0, Channel::kTensors, header, allocate_zeroed(8));
  EXPECT_EQ(transports[1]->wait(receive, 1s).error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace everstep::trainer
