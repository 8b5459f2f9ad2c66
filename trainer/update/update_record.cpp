#include "trainer/update/update_record.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::uint32_t kRecordFormat = 5;
// Format, a flag, the stop, a flag, a reserved byte, busy, elapsed, source, number of losses.
constexpr std::size_t kFixedBytes = 40;
constexpr std::int64_t kNoSource = -1;
constexpr std::size_t kBytesPerSum = 8;
constexpr std::size_t kBytesPerLoss = 16;
constexpr std::size_t kBytesPerHash = 8;
constexpr std::size_t kBytesPerTime = 8;

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

template <typename Number>
void put_padded(WireWriter& writer, const std::vector<Number>& numbers, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) writer.put(i < numbers.size() ? numbers[i] : Number{0});
}

double next_double(WireReader& reader) { return std::bit_cast<double>(reader.get<std::uint64_t>()); }

}  // namespace

std::size_t RecordCapacity::bytes() const {
  return kFixedBytes + sums_of_squares * kBytesPerSum + losses * kBytesPerLoss + weight_hashes * kBytesPerHash +
         stage_times * kBytesPerTime;
}

void encode_record(const UpdateRecord& record, const RecordCapacity& capacity, std::span<std::byte> bytes) {
  EVERSTEP_CHECK(bytes.size() == capacity.bytes() && record.sums_of_squares.size() == capacity.sums_of_squares &&
                     record.losses.size() <= capacity.losses && record.weight_hashes.size() <= capacity.weight_hashes &&
                     record.stage_times.size() <= capacity.stage_times,
                 "an update record that does not fit the plan");
  WireWriter writer;
  writer.put(kRecordFormat);
  writer.put(static_cast<std::uint8_t>(record.finite));
  writer.put(static_cast<std::uint8_t>(record.stop));
  writer.put(static_cast<std::uint8_t>(record.writer_idle));
  writer.put(std::uint8_t{0});  // reserved
  writer.put(record.busy);
  writer.put(record.elapsed);
  writer.put(record.source ? std::int64_t{*record.source} : kNoSource);
  writer.put(static_cast<std::uint64_t>(record.losses.size()));
  for (const double sum : record.sums_of_squares) writer.put(bits_of(sum));
  put_padded(writer, record.weight_hashes, capacity.weight_hashes);
  put_padded(writer, record.stage_times, capacity.stage_times);
  for (const MinibatchLoss& loss : record.losses) {
    writer.put(std::int64_t{loss.minibatch});
    writer.put(bits_of(loss.loss));
  }
  const auto end = std::copy(writer.bytes().begin(), writer.bytes().end(), bytes.begin());
  std::fill(end, bytes.end(), std::byte{0});
}

Result<UpdateRecord> decode_record(const RecordCapacity& capacity, std::span<const std::byte> bytes) {
  if (bytes.size() != capacity.bytes()) return Error{ErrorCode::kInternal, "an update record of the wrong size", ""};
  WireReader reader(bytes);
  const auto format = reader.get<std::uint32_t>();
  const auto finite = reader.get<std::uint8_t>();
  const auto stop = reader.get<std::uint8_t>();
  const auto writer_idle = reader.get<std::uint8_t>();
  reader.get<std::uint8_t>();  // reserved
  UpdateRecord record;
  record.finite = finite == 1;
  record.stop = static_cast<WindowStop>(stop);
  record.writer_idle = writer_idle == 1;
  reader.get(record.busy);
  reader.get(record.elapsed);
  const auto source = reader.get<std::int64_t>();
  if (source != kNoSource) record.source = static_cast<int>(source);
  const auto losses = reader.get<std::uint64_t>();
  constexpr auto kStrongest = static_cast<std::uint8_t>(WindowStop::kSaveAndEnd);
  if (format != kRecordFormat || finite > 1 || stop > kStrongest || writer_idle > 1 || losses > capacity.losses ||
      source < kNoSource || source > std::numeric_limits<int>::max()) {
    return Error{ErrorCode::kInternal, "an update record that no worker of this version writes",
                 "do all workers run the same build?"};
  }
  for (std::size_t i = 0; i < capacity.sums_of_squares; ++i) record.sums_of_squares.push_back(next_double(reader));
  for (std::size_t i = 0; i < capacity.weight_hashes; ++i) record.weight_hashes.push_back(reader.get<std::uint64_t>());
  for (std::size_t i = 0; i < capacity.stage_times; ++i) record.stage_times.push_back(reader.get<Tick>());
  for (std::uint64_t i = 0; i < losses; ++i) {
    const auto minibatch = static_cast<int>(reader.get<std::int64_t>());
    record.losses.push_back({minibatch, next_double(reader)});
  }
  return record;
}

}  // namespace everstep::trainer
