#include "trainer/nccl/communicator_ending.h"

#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace everstep::trainer {

bool end_communicators(const NcclApi& api, const std::vector<NcclCommunicator>& communicators,
                       std::chrono::milliseconds limit) {
  if (communicators.empty()) return true;
  std::promise<void> promise;
  const std::future<void> ended = promise.get_future();
  // A thread of its own, because ncclCommAbort has been seen to hang: then we must not. It owns all it uses.
  std::thread([promise = std::move(promise), revoke = api.comm_revoke, abort = api.comm_abort,
               communicators]() mutable {
    // What these calls say does not matter: there is nothing else to do with the communicators.
    for (NcclCommunicator communicator : communicators) static_cast<void>(revoke(communicator));
    for (NcclCommunicator communicator : communicators) static_cast<void>(abort(communicator));
    promise.set_value();
  }).detach();
  return ended.wait_for(limit) == std::future_status::ready;
}

}  // namespace everstep::trainer
