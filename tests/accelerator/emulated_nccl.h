#pragma once

#include <functional>
#include <memory>

#include "tests/accelerator/accelerator.h"
#include "trainer/nccl/nccl_api.h"

namespace everstep::accelerator {

struct EmulatedNcclOptions {
  DeviceId device = 0;          // whose hardware queues the streams share
  int version = 23007;          // as NCCL says it
  bool has_device = true;       // false: set_device() fails
  bool connects = true;         // false: communicators are never made
  bool tells_of_death = false;  // a peer's death is an asynchronous error; else kernels wait for ever, as over NVLink
  // Called in each abort, which ends when it returns.
  std::function<void()> in_abort = [] {};
  // Called where it is against the rules to free a communicator; else the process ends.
  std::function<void()> on_free_amid_transfers = {};
};

// NCCL and the calls of CUDA around it, on the fake accelerator: real order, slow bytes. Communicators of two ranks
// meet over Unix sockets, so workers may be threads or processes. It is as unforgiving as NCCL, or more:
// - a communicator in progress may only be asked about; the operations of one run one after another, whatever their
//   streams;
// - a send waits for the peer's receive, and the other way round: NCCL may buffer some bytes, and nobody may rely on
// it;
// - sizes of a pair are equal, memory is the device's, and nothing follows a destroy or an abort;
// - finalizing ends when both ends do; only a communicator that is made, and not finalizing, can be revoked;
// - no communicator is freed (destroyed or aborted) while transfers of others run, or are launched, on the device.
// What is against the rules fails, with the rule as the text. Whoever has received knows what its sender knew when it
// sent, in this process or by way of others.
//
// `accelerator` must outlive the table and all communicators.
trainer::NcclApi emulated_nccl(Accelerator& accelerator, const EmulatedNcclOptions& options = {});

// Whether what runs on the stream is a transfer whose peer, in this process, has not come to it.
bool waits_for_its_peer(const Accelerator& accelerator, StreamId stream);

// Communicators of this process that were neither destroyed nor aborted.
int emulated_communicators();

}  // namespace everstep::accelerator
