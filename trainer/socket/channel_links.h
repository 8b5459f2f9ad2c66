#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/socket/channel_link.h"
#include "trainer/socket/closing_streams.h"

namespace everstep::trainer {

using ChannelStreams = std::array<std::unique_ptr<ByteStream>, kChannels>;

// The links with all peers, by worker and channel, and by the number that their events carry.
class ChannelLinks {
 public:
  // `channels[i]` leads to worker i; the own place is empty.
  ChannelLinks(std::vector<ChannelStreams> channels, const FileDescriptor& service) {
    for (ChannelStreams& streams : channels) {
      for (std::unique_ptr<ByteStream>& stream : streams) {
        const std::uint64_t number = links_.size();
        links_.push_back(stream ? std::make_unique<ChannelLink>(std::move(stream), service, number) : nullptr);
      }
    }
  }

  ChannelLink& at(std::uint64_t number) const { return *links_[number]; }
  ChannelLink& with(int worker, Channel channel) const {
    return *links_[worker * kChannels + static_cast<int>(channel)];
  }
  static int worker_of(std::uint64_t number) { return static_cast<int>(number) / kChannels; }

  // A worker of those that `counts`, for which there are frames that have not left.
  template <typename Counts>
  std::optional<int> first_with_output(Counts counts) const {
    for (std::uint64_t number = 0; number < links_.size(); ++number) {
      if (!links_[number] || !counts(worker_of(number))) continue;
      const std::lock_guard lock(at(number).mutex);
      if (at(number).has_output()) return worker_of(number);
    }
    return std::nullopt;
  }

  // Whether there are frames for this worker that can never leave.
  bool drop_output_for(int worker) const {
    for (int channel = 0; channel < kChannels; ++channel) {
      ChannelLink& link = with(worker, static_cast<Channel>(channel));
      const std::lock_guard lock(link.mutex);
      if (link.drops_output()) return true;
    }
    return false;
  }

  // So that what was written still arrives.
  void end_gently(ClosingStreams& closing) {
    for (const auto& link : links_) {
      if (link) closing.take(link->take_stream());
    }
  }

 private:
  std::vector<std::unique_ptr<ChannelLink>> links_;  // the own places are empty
};

}  // namespace everstep::trainer
