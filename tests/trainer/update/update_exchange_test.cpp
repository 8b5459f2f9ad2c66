#include "trainer/update/update_exchange.h"

#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

constexpr RecordCapacity kCapacity{3, 4, 0, 2};

UpdateRecord some_record() {
  return {true, WindowStop::kNo, false, 7, 9, {0.5, 1.5, -0.0}, {{3, 2.25}, {1, 0.125}}, {}, 2, {11, 13}};
}

Buffer encoded(const UpdateRecord& record) {
  const Buffer bytes = allocate_scratch(kCapacity.bytes());
  encode_record(record, kCapacity, bytes.as<std::byte>());
  return bytes;
}

Result<UpdateRecord> decoded(const Buffer& bytes) { return decode_record(kCapacity, bytes.as<const std::byte>()); }

scheduler::Schedule two_devices() {
  scheduler::ScheduleRequest request;
  request.depth = 2;
  request.window = 4;
  return scheduler::make_schedule(request).value();
}

// A model of two stages under AMDP on two devices, both of which own one.
class Deciding : public testing::Test {
 protected:
  Deciding() {
    ModelConfig model;
    model.shape = {"test", scheduler::ModelFamily::kGpt, 1, 4, 1, 4, 8};
    layouts_ = {layout_of(model, 0, 2), layout_of(model, 2, 3)};
    for (const RecordCapacity& capacity : record_capacities(schedule_, layouts_)) {
      UpdateRecord& record = records_.emplace_back();
      record.sums_of_squares.assign(capacity.sums_of_squares, 1.0);
    }
    records_[1].losses = {{1, 2.0}, {0, 4.0}, {2, 3.0}, {3, 3.0}};
  }

  UpdateDecision decide() const { return decide_update(schedule_, layouts_, records_); }

  scheduler::Schedule schedule_ = two_devices();
  std::vector<StageLayout> layouts_;
  std::vector<UpdateRecord> records_;
};

TEST(UpdateRecord, SurvivesTheWire) {
  EXPECT_EQ(decoded(encoded(some_record())).value(), some_record());
  UpdateRecord other = some_record();
  other.finite = false;
  other.stop = WindowStop::kSaveAndEnd;
  other.losses.clear();
  other.source = 3;
  EXPECT_EQ(decoded(encoded(other)).value(), other);
}

TEST(UpdateRecord, IsRefusedWhenItPromisesMoreLossesThanThePlan) {
  const Buffer bytes = encoded(some_record());
  bytes.data[32] = std::byte{5};  // where their number stands
  EXPECT_FALSE(decoded(bytes).ok());
}

TEST(UpdateRecord, IsRefusedInAnotherFormat) {
  const Buffer bytes = encoded(some_record());
  bytes.data[0] = std::byte{9};
  EXPECT_FALSE(decoded(bytes).ok());
}

TEST_F(Deciding, SumsSquaresOfAllParametersAndTheTiedOneOnce) {
  const std::size_t parameters = layouts_[0].entries.size() + layouts_[1].entries.size();
  EXPECT_DOUBLE_EQ(decide().gradient_norm, std::sqrt(static_cast<double>(parameters) - 1));
}

TEST_F(Deciding, AveragesTheLossesOverTheWindow) { EXPECT_DOUBLE_EQ(decide().loss, 3.0); }

TEST_F(Deciding, SkipsTheWindowIfAnyWorkerLostAGradient) {
  EXPECT_TRUE(decide().finite);
  records_[1].finite = false;
  EXPECT_FALSE(decide().finite);
}

TEST_F(Deciding, SkipsTheWindowIfNormOrLossAreNotFinite) {
  records_[0].sums_of_squares[2] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(decide().finite);
  records_[0].sums_of_squares[2] = 1;
  records_[1].losses[0].loss = std::nan("");
  EXPECT_FALSE(decide().finite);
}

TEST_F(Deciding, StopsAsTheStrongestWishSays) {
  EXPECT_EQ(decide().stop, WindowStop::kNo);
  records_[0].stop = WindowStop::kHandOver;
  EXPECT_EQ(decide().stop, WindowStop::kHandOver);
  records_[1].stop = WindowStop::kSaveAndEnd;
  EXPECT_EQ(decide().stop, WindowStop::kSaveAndEnd);
}

TEST_F(Deciding, ReportsTheBusyShareOfAllWorkers) {
  records_[0].busy = 1;
  records_[0].elapsed = 2;
  records_[1].busy = 2;
  records_[1].elapsed = 2;
  EXPECT_DOUBLE_EQ(decide().busy, 0.75);
}

TEST(MeanLoss, IsSummedInTheOrderOfMinibatches) {
  std::vector<UpdateRecord> records(2);
  records[0].losses = {{2, 1e16}, {0, -1e16}};
  records[1].losses = {{3, 1.0}, {1, 1.0}};
  const double in_order = (((-1e16 + 1.0) + 1e16) + 1.0) / 4;
  EXPECT_EQ(mean_of(losses_in_order(records)), in_order);
}

TEST(ClipScale, LimitsTheNorm) {
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_scale(4.0, 1.0), 0.25, 1e-6);
  EXPECT_EQ(clip_scale(4.0, 0.0), 1.0);
}

TEST(UpdateExchange, GivesEverybodyTheSameRecords) {
  constexpr int kWorkers = 5;
  constexpr int kExchanges = 20;
  const auto transports = make_thread_transports(kWorkers, {std::chrono::microseconds(200), 5});
  const std::vector<RecordCapacity> capacities(kWorkers, kCapacity);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      for (int window = 0; window < kExchanges; ++window) {
        UpdateRecord mine = some_record();
        mine.busy = worker + 100 * window;
        FrameHeader header;
        header.window = window;
        const auto records = exchange_records(*transports[worker], header, capacities, mine, std::chrono::seconds(20));
        ASSERT_TRUE(records.ok()) << records.error();
        for (int peer = 0; peer < kWorkers; ++peer) EXPECT_EQ((*records)[peer].busy, peer + 100 * window);
      }
      EXPECT_TRUE(transports[worker]->close(std::chrono::seconds(20)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace everstep::trainer
