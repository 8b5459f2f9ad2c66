#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/ucx/ucx_transport.h"

namespace everstep::trainer {

inline constexpr std::uint64_t kTestLineage = 7;

// All workers in this process, with the real sockets and the real UCX between them.
inline std::vector<std::unique_ptr<Transport>> make_ucx_transports(int workers) {
  std::vector<std::unique_ptr<UcxListener>> listeners;
  std::vector<std::string> addresses;
  for (int worker = 0; worker < workers; ++worker) {
    listeners.push_back(UcxListener::listen({.worker = worker, .lineage = kTestLineage}).value());
    addresses.push_back(listeners.back()->address());
  }
  std::vector<std::unique_ptr<Transport>> transports(workers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back(
        [&, worker] { transports[worker] = listeners[worker]->connect(addresses, std::chrono::seconds(10)).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  return transports;
}

}  // namespace everstep::trainer
