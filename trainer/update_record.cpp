#include "trainer/update_record.h"

#include <cstring>

#include "base/check.h"

namespace everstep::trainer {
namespace {

constexpr std::uint32_t kFormat = 1;

struct FixedPart {
  std::uint32_t format = kFormat;
  std::uint8_t finite = 0;
  std::uint8_t stop_requested = 0;
  std::uint16_t reserved = 0;
  std::int64_t busy = 0;
  std::int64_t elapsed = 0;
  std::uint64_t losses = 0;
};
static_assert(sizeof(FixedPart) == 32, "no padding: the bytes go over the wire");

struct WireLoss {
  std::int64_t minibatch = 0;
  double loss = 0;
};

template <typename T>
std::span<std::byte> put(std::span<std::byte> to, const T& value) {
  std::memcpy(to.data(), &value, sizeof value);
  return to.subspan(sizeof value);
}

template <typename T>
std::span<const std::byte> take(std::span<const std::byte> from, T& value) {
  std::memcpy(&value, from.data(), sizeof value);
  return from.subspan(sizeof value);
}

}  // namespace

std::size_t RecordCapacity::bytes() const {
  return sizeof(FixedPart) + sums_of_squares * sizeof(double) + losses * sizeof(WireLoss);
}

void encode_record(const UpdateRecord& record, const RecordCapacity& capacity, std::span<std::byte> bytes) {
  EVERSTEP_CHECK(bytes.size() == capacity.bytes() && record.sums_of_squares.size() == capacity.sums_of_squares &&
                     record.losses.size() <= capacity.losses,
                 "an update record that does not fit the plan");
  FixedPart fixed;
  fixed.finite = record.finite ? 1 : 0;
  fixed.stop_requested = record.stop_requested ? 1 : 0;
  fixed.busy = record.busy;
  fixed.elapsed = record.elapsed;
  fixed.losses = record.losses.size();
  bytes = put(bytes, fixed);
  for (const double sum : record.sums_of_squares) bytes = put(bytes, sum);
  for (const MinibatchLoss& loss : record.losses) bytes = put(bytes, WireLoss{loss.minibatch, loss.loss});
  std::memset(bytes.data(), 0, bytes.size());
}

Result<UpdateRecord> decode_record(const RecordCapacity& capacity, std::span<const std::byte> bytes) {
  if (bytes.size() != capacity.bytes()) return Error{ErrorCode::kInternal, "an update record of the wrong size", ""};
  FixedPart fixed;
  bytes = take(bytes, fixed);
  if (fixed.format != kFormat || fixed.finite > 1 || fixed.stop_requested > 1 || fixed.losses > capacity.losses) {
    return Error{ErrorCode::kInternal, "an update record that no worker of this version writes",
                 "do all workers run the same build?"};
  }
  UpdateRecord record{fixed.finite == 1, fixed.stop_requested == 1, fixed.busy, fixed.elapsed, {}, {}};
  record.sums_of_squares.resize(capacity.sums_of_squares);
  for (double& sum : record.sums_of_squares) bytes = take(bytes, sum);
  for (std::uint64_t i = 0; i < fixed.losses; ++i) {
    WireLoss loss;
    bytes = take(bytes, loss);
    record.losses.push_back({static_cast<int>(loss.minibatch), loss.loss});
  }
  return record;
}

}  // namespace everstep::trainer
