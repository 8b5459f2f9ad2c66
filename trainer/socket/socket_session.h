#pragma once

#include <memory>
#include <vector>

#include "trainer/socket/channel_links.h"
#include "trainer/socket/closing_streams.h"
#include "trainer/socket/lifelines.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// The transport of a worker that is connected to all peers; `channels[i]` leads to worker i, the own place is empty.
//
// Frames are moved in the caller's thread as far as the kernel takes or has them at once. A service thread, which
// sleeps while nothing happens, does the rest while the caller computes, and looks after the lifelines. While the
// caller waits for a frame it reads that channel itself: to be woken by the event, and not by a thread that was, halves
// the way.
std::unique_ptr<Transport> make_socket_session(int worker, std::vector<ChannelStreams> channels,
                                               std::shared_ptr<Lifelines> lifelines,
                                               std::shared_ptr<ClosingStreams> closing);

}  // namespace everstep::trainer
