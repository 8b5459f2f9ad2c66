#include "trainer/loop/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using scheduler::parse_op;

TEST(FlightRecorder, KeepsTheLastOpsOldestFirst) {
  FlightRecorder recorder(2);
  for (const char* name : {"F0.0.0@1", "F0.0.1@1", "B0.0.0@1"}) {
    recorder.begin(parse_op(name).value(), 1 * kMillisecond);
    recorder.input_ready(3 * kMillisecond);
    recorder.end(7 * kMillisecond);
  }
  EXPECT_EQ(recorder.dump(10 * kMillisecond),
            "F0.0.1@1 waited 2.00 ms, ran 4.00 ms, ended 3.00 ms ago\n"
            "B0.0.0@1 waited 2.00 ms, ran 4.00 ms, ended 3.00 ms ago\n");
}

TEST(FlightRecorder, SaysWhatAnUnfinishedOpIsDoing) {
  FlightRecorder recorder(8);
  recorder.begin(parse_op("F0.0.0@1").value(), 0);
  EXPECT_EQ(recorder.dump(5 * kMillisecond), "F0.0.0@1 has waited for 5.00 ms\n");
  recorder.input_ready(5 * kMillisecond);
  EXPECT_EQ(recorder.dump(9 * kMillisecond), "F0.0.0@1 waited 5.00 ms, has run for 4.00 ms\n");
}

TEST(FlightRecorder, TakesAnOpWithoutInputAsStartedWhenReached) {
  FlightRecorder recorder(8);
  recorder.begin(parse_op("R0@1").value(), 2 * kMillisecond);
  const OpRecord& record = recorder.end(3 * kMillisecond);
  EXPECT_EQ(record.started, 2 * kMillisecond);
  EXPECT_EQ(record.end, 3 * kMillisecond);
}

}  // namespace
}  // namespace everstep::trainer
