#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <utility>

#include "base/result.h"
#include "trainer/socket/channel_link.h"

namespace everstep::trainer {

// What a worker sends to itself. Not thread-safe.
class OwnFrames {
 public:
  Status send(Channel channel, const FrameHeader& header, Buffer payload) {
    Lane& lane = lane_of(channel);
    lane.sent.emplace_back(header, std::move(payload));
    return match(lane);
  }

  Status post(std::shared_ptr<Posted> posted) {
    Lane& lane = lane_of(posted->channel);
    lane.posted.push_back(std::move(posted));
    return match(lane);
  }

 private:
  struct Lane {
    std::deque<std::pair<FrameHeader, Buffer>> sent;
    std::deque<std::shared_ptr<Posted>> posted;
  };

  Lane& lane_of(Channel channel) { return lanes_[static_cast<std::size_t>(channel)]; }

  static Status match(Lane& lane) {
    while (!lane.sent.empty() && !lane.posted.empty()) {
      const auto& [header, payload] = lane.sent.front();
      Posted& posted = *lane.posted.front();
      EVERSTEP_TRY(check_frame(header, posted.expected));
      std::copy_n(payload.data, payload.size, posted.into.data);
      posted.came = header;
      posted.complete = true;
      lane.sent.pop_front();
      lane.posted.pop_front();
    }
    return {};
  }

  std::array<Lane, kChannels> lanes_;
};

}  // namespace everstep::trainer
