#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace everstep::accelerator {

using StreamId = std::int64_t;  // from 0, which is the default stream
using DeviceId = int;           // from 0; streams of one device share its hardware queues

// One piece of a stream's work: the first has number 1. It is over when `number` pieces of the stream are.
struct Moment {
  StreamId stream = 0;
  std::uint64_t number = 0;
};

// How much of every stream is known to be over at some place: a vector clock. Streams and host threads have one each.
class Clock {
 public:
  std::uint64_t of(StreamId stream) const {
    const auto index = static_cast<std::size_t>(stream);
    return index < over_.size() ? over_[index] : 0;
  }

  bool knows(const Moment& moment) const { return of(moment.stream) >= moment.number; }

  void learn(const Moment& moment) {
    const auto index = static_cast<std::size_t>(moment.stream);
    if (index >= over_.size()) over_.resize(index + 1);
    over_[index] = std::max(over_[index], moment.number);
  }

  void learn(const Clock& other) {
    if (other.over_.size() > over_.size()) over_.resize(other.over_.size());
    for (std::size_t i = 0; i < other.over_.size(); ++i) over_[i] = std::max(over_[i], other.over_[i]);
  }

  // To tell another process of it.
  const std::vector<std::uint64_t>& numbers() const { return over_; }
  static Clock of_numbers(std::vector<std::uint64_t> numbers) {
    Clock clock;
    clock.over_ = std::move(numbers);
    return clock;
  }

 private:
  std::vector<std::uint64_t> over_;  // by stream
};

}  // namespace everstep::accelerator
