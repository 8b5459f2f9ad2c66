#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "trainer/wire/transport.h"

namespace everstep::trainer {

// The collectives of one worker (sums of gradients and new weights, provisional ones too, for whomever) leave it over
// one emulated link: one frame after the other, each handed to `host` when its bytes have had their time. Senders never
// wait, and frames keep their order. All else passes by at once.
//
// `host` must outlive the transport, and is to be used by nobody else meanwhile, but for abort(). What was not flushed
// when it ends is lost.
std::unique_ptr<Transport> make_emulated_link(Transport& host, std::int64_t bytes_per_second);

// When the frames that are put on such a link one after the other have left it.
class LinkClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit LinkClock(std::int64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  Time left_at(Time now, std::size_t bytes);

 private:
  std::int64_t bytes_per_second_;
  Time free_;
};

}  // namespace everstep::trainer
