#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/ucx/ucx_transport.h"

namespace everstep::trainer {

inline constexpr std::uint64_t kTestLineage = 7;

inline WorkerId test_worker_id(int worker) { return {{42, static_cast<std::uint64_t>(worker)}}; }

// The group of workers with these addresses, as worker `worker` is told of it.
inline UcxGroup test_group(int worker, const std::vector<std::string>& addresses, std::int64_t generation = 1,
                           std::uint32_t nonce = 0) {
  UcxGroup group{kTestLineage, Generation{generation}, nonce, worker, {}};
  for (const std::string& address : addresses) {
    group.members.push_back({test_worker_id(static_cast<int>(group.members.size())), address});
  }
  return group;
}

// All workers in this process, with the real sockets and the real UCX between them. They can be connected again and
// again.
class LoopbackWorkers {
 public:
  explicit LoopbackWorkers(int workers, const UcxOptions& options = {}) {
    for (int worker = 0; worker < workers; ++worker) {
      listeners.push_back(UcxListener::listen(options).value());
      addresses.push_back(listeners.back()->address());
    }
  }

  std::vector<UcxOutcome> try_to_connect(std::int64_t generation, std::chrono::milliseconds timeout) {
    std::vector<UcxOutcome> outcomes;
    for (std::size_t worker = 0; worker < listeners.size(); ++worker) outcomes.push_back({Error{}, {}});
    std::vector<std::thread> threads;
    for (int worker = 0; worker < static_cast<int>(listeners.size()); ++worker) {
      threads.emplace_back([&, worker] {
        outcomes[worker] = listeners[worker]->connect(test_group(worker, addresses, generation), timeout);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  std::vector<UcxConnection> connect(std::int64_t generation = 1) {
    std::vector<UcxConnection> connections;
    for (UcxOutcome& outcome : try_to_connect(generation, std::chrono::seconds(10))) {
      connections.push_back(std::move(outcome.connection).value());
    }
    return connections;
  }

  std::vector<std::unique_ptr<UcxListener>> listeners;
  std::vector<std::string> addresses;
};

inline std::vector<std::unique_ptr<Transport>> make_ucx_transports(int workers) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (UcxConnection& connection : LoopbackWorkers(workers).connect()) {
    transports.push_back(std::move(connection.transport));
  }
  return transports;
}

}  // namespace everstep::trainer
