#include "trainer/loop/flight_recorder.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace everstep::trainer {
namespace {

std::string milliseconds(Tick ticks) { return fixed_text(to_seconds(ticks) * 1e3, 2) + " ms"; }

}  // namespace

FlightRecorder::FlightRecorder(std::size_t capacity) : ring_(capacity) {
  EVERSTEP_CHECK(capacity > 0, "a flight recorder without room");
}

void FlightRecorder::begin(const scheduler::Op& op, Tick now) { ring_[count_++ % ring_.size()] = {op, now, 0, 0}; }

void FlightRecorder::input_ready(Tick now) { last().started = now; }

const OpRecord& FlightRecorder::end(Tick now) {
  OpRecord& record = last();
  if (record.started == 0) record.started = record.begin;
  record.end = now;
  return record;
}

std::vector<OpRecord> FlightRecorder::records() const {
  std::vector<OpRecord> records;
  const std::uint64_t kept = std::min<std::uint64_t>(count_, ring_.size());
  for (std::uint64_t i = count_ - kept; i < count_; ++i) records.push_back(ring_[i % ring_.size()]);
  return records;
}

std::string FlightRecorder::dump(Tick now) const {
  std::string text;
  for (const OpRecord& record : records()) {
    text += to_string(record.op);
    if (record.end != 0) {
      text += " waited " + milliseconds(record.started - record.begin) + ", ran " +
              milliseconds(record.end - record.started) + ", ended " + milliseconds(now - record.end) + " ago\n";
    } else if (record.started != 0) {
      text += " waited " + milliseconds(record.started - record.begin) + ", has run for " +
              milliseconds(now - record.started) + "\n";
    } else {
      text += " has waited for " + milliseconds(now - record.begin) + "\n";
    }
  }
  return text;
}

OpRecord& FlightRecorder::last() {
  EVERSTEP_CHECK(count_ > 0, "no op has begun");
  return ring_[(count_ - 1) % ring_.size()];
}

}  // namespace everstep::trainer
