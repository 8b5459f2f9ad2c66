#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/temporary_directory.h"
#include "trainer/socket/socket_connector.h"

namespace everstep::trainer {

inline constexpr std::uint64_t kTestLineage = 7;

inline WorkerId test_worker_id(int worker) { return {{42, static_cast<std::uint64_t>(worker)}}; }

// The roster of workers with these addresses, as worker `worker` is told of it.
inline PeerRoster test_roster(int worker, const std::vector<std::string>& addresses, std::int64_t generation = 1,
                              std::uint32_t nonce = 0) {
  PeerRoster roster{kTestLineage, Generation{generation}, nonce, worker, {}};
  for (const std::string& address : addresses) {
    roster.members.push_back({test_worker_id(static_cast<int>(roster.members.size())), address});
  }
  return roster;
}

// All workers in this process, with real sockets between them. They can be connected again and again.
class LoopbackWorkers {
 public:
  // Where the options name neither a directory nor a port, the sockets lie in a directory of their own.
  explicit LoopbackWorkers(int workers, SocketOptions options = {}) {
    options.lineage = kTestLineage;
    if (options.runtime_directory.empty() && !options.tcp) options.runtime_directory = directory_.file("run");
    for (int worker = 0; worker < workers; ++worker) {
      connectors.push_back(listen_for_peers(options).value());
      addresses.push_back(connectors.back()->address());
    }
  }

  std::vector<ConnectOutcome> try_to_connect(std::int64_t generation, std::chrono::milliseconds timeout) {
    std::vector<ConnectOutcome> outcomes;
    for (std::size_t worker = 0; worker < connectors.size(); ++worker) outcomes.push_back({Error{}, {}});
    std::vector<std::thread> threads;
    for (int worker = 0; worker < static_cast<int>(connectors.size()); ++worker) {
      threads.emplace_back([&, worker] {
        outcomes[worker] = connectors[worker]->connect(test_roster(worker, addresses, generation), timeout);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  std::vector<PeerConnection> connect(std::int64_t generation = 1) {
    std::vector<PeerConnection> connections;
    for (ConnectOutcome& outcome : try_to_connect(generation, std::chrono::seconds(30))) {
      connections.push_back(std::move(outcome.connection).value());
    }
    return connections;
  }

 private:
  TemporaryDirectory directory_;

 public:
  std::vector<std::unique_ptr<PeerConnector>> connectors;
  std::vector<std::string> addresses;
};

inline std::vector<std::unique_ptr<Transport>> make_socket_transports(int workers, const SocketOptions& options = {}) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (PeerConnection& connection : LoopbackWorkers(workers, options).connect()) {
    transports.push_back(std::move(connection.transport));
  }
  return transports;
}

}  // namespace everstep::trainer
