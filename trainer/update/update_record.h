#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/tick.h"
#include "trainer/model/buffer.h"
#include "trainer/update/window_stop.h"

namespace everstep::trainer {

struct MinibatchLoss {
  int minibatch = 0;  // inside the window: 0 … M - 1
  double loss = 0;

  bool operator==(const MinibatchLoss&) const = default;
};

// What one worker brings to the update exchange, the only point of a window where all workers meet. Everything that
// needs everybody's word rides on it.
struct UpdateRecord {
  bool finite = true;                   // no gradient of this worker's chunks was lost to NaN, infinity or overflow
  WindowStop stop = WindowStop::kNo;    // how somebody asked this worker to end the run
  bool writer_idle = true;              // this worker could save now
  Tick busy = 0;                        // computing since the last exchange
  Tick elapsed = 0;                     // since the last exchange
  std::vector<double> sums_of_squares;  // per entry of the stages this worker owns, stages ascending
  std::vector<MinibatchLoss> losses;    // of the window's minibatches that ended here
  std::vector<std::uint64_t> weight_hashes{};  // per chunk, stages ascending; empty or 0 where they are not compared
  std::optional<int> source{};                 // the window's first minibatch whose numbers ceased to be finite here
  std::vector<Tick> stage_times{};             // per chunk: of a minibatch there and back; 0 where it is not known

  bool operator==(const UpdateRecord&) const = default;
};

// How much a worker's record may hold: known to all from the plan, so that its size on the wire is fixed and a lying
// peer cannot make anybody allocate.
struct RecordCapacity {
  std::size_t sums_of_squares = 0;
  std::size_t losses = 0;
  std::size_t weight_hashes = 0;
  std::size_t stage_times = 0;

  std::size_t bytes() const;
};

// Writes the record into `bytes`, which are exactly as many as the capacity says.
void encode_record(const UpdateRecord& record, const RecordCapacity& capacity, std::span<std::byte> bytes);

// Refuses anything that encode_record would not have made from a record that fits.
Result<UpdateRecord> decode_record(const RecordCapacity& capacity, std::span<const std::byte> bytes);

}  // namespace everstep::trainer
