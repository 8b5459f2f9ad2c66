#include "trainer/update/piece_transfer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/threads/thread_transport.h"
#include "trainer/wire/wrapped_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::SizeIs;

constexpr std::size_t kMib = std::size_t{1} << 20;

class Sizes final : public WrappedTransport {
 public:
  explicit Sizes(Transport& inner) : WrappedTransport(inner) {}
  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    sizes.push_back(payload.size);
    WrappedTransport::send(to, channel, header, std::move(payload));
  }
  std::vector<std::size_t> sizes;
};

TEST(Pieces, AreLargeInLongBuffers) {
  EXPECT_EQ(piece_bytes(5), kMib);
  EXPECT_EQ(piece_bytes(15 * kMib), kMib);
  EXPECT_EQ(piece_bytes(16 * kMib), 2 * kMib);
  EXPECT_EQ(piece_bytes(1000 * kMib), 8 * kMib);
  const auto transports = make_thread_transports(2);
  Sizes sender(*transports[0]);
  send_in_pieces(sender, 1, {}, allocate_zeroed(64 * kMib));
  EXPECT_THAT(sender.sizes, testing::AllOf(SizeIs(8), Each(8 * kMib)));
}

// Sums of different lengths one after the other, by way of the same staging.
TEST(Pieces, AddUpToTheWhole) {
  const auto transports = make_thread_transports(2);
  std::vector<Buffer> staging;
  for (const std::size_t numbers : {std::size_t{7}, 5 * kMib + 3, std::size_t{300'000}}) {
    const Buffer sent = allocate_zeroed(numbers * sizeof(float));
    const Buffer sum = allocate_zeroed(sent.size);
    for (std::size_t i = 0; i < numbers; ++i) {
      sent.as<float>()[i] = static_cast<float>(i % 1000);
      sum.as<float>()[i] = 1;
    }
    fit_staging(staging, host_memory(), sum.size);
    PieceReceiver receiver(*transports[1], 0, {}, sum, Accumulation::kFloat, Channel::kCollectives, host_memory(),
                           staging);
    send_in_pieces(*transports[0], 1, {}, sent);
    ASSERT_TRUE(receiver.finish(10s));
    const auto got = sum.as<float>();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < numbers; ++i) wrong += got[i] == static_cast<float>(i % 1000) + 1 ? 0 : 1;
    EXPECT_EQ(wrong, 0) << numbers;
  }
}

}  // namespace
}  // namespace everstep::trainer
