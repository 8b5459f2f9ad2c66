#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <etcd/SyncClient.hpp>

#include "elastic/etcd_call.h"
#include "elastic/etcd_client.h"
#include "elastic/etcd_endpoint.h"
#include "elastic/etcd_history.h"

namespace everstep::elastic {

using ApiClock = std::chrono::steady_clock;

// The library's clients, and the server that all calls go to until it fails. It does not rotate over servers by itself
// (its issue 249), so that each server has clients of its own. A client's time limit is not for any thread to change;
// there is one client per limit, and a call takes the longest that ends in time. For any thread.
class ApiClients {
 public:
  ApiClients(const std::vector<Endpoint>& endpoints, const EtcdOptions& options);

  std::size_t size() const { return servers_.size(); }
  const std::string& url(std::size_t index) const { return servers_[index].url; }

  std::size_t preferred() const { return preferred_; }
  // Whoever found this server failing moves on to the next; only the first of several does.
  void leave(std::size_t index) { preferred_.compare_exchange_strong(index, (index + 1) % size()); }

  // How long one server may take: with others to ask, not all the time there is.
  ApiClock::time_point try_limit(ApiClock::time_point deadline) const;

  // One that gives up before `end`, or after a tenth of a second.
  etcd::SyncClient& client(std::size_t index, ApiClock::time_point end) const;

  // For calls that the library gives no limit: this client's end after three seconds. (In gRPC 1.51 it is one to two;
  // so short a limit as others have would be over before it began.)
  etcd::SyncClient& unlimited_client(std::size_t index) const { return *servers_[index].unlimited; }

  // Waits until the server is connected, or known not to be: a call then says why. False: not even that in time.
  bool is_tried(const etcd::SyncClient& client, ApiClock::time_point end) const;

  // Lets time pass after a failure. gRPC makes progress with a connection only while somebody waits for it.
  void pause(std::size_t index, std::chrono::milliseconds time) const;

  Revision newest() const;
  Status check_revision(Revision revision, Revision before, const std::string& url);
  // Asks the server which cluster it belongs to, unless that is known since its last failure: answers to other calls
  // do not tell. Nothing: it is the one that it was.
  std::optional<CallFailure> cluster_failure(std::size_t index, etcd::SyncClient& client);
  void forget_cluster(std::size_t index) { servers_[index].is_known = false; }

 private:
  static constexpr std::array<std::chrono::milliseconds, 3> kLimits = {
      std::chrono::milliseconds(100), std::chrono::milliseconds(500), std::chrono::milliseconds(2000)};

  struct Server {
    std::string url;
    std::array<std::unique_ptr<etcd::SyncClient>, kLimits.size()> clients;
    std::unique_ptr<etcd::SyncClient> unlimited;
    std::atomic<bool> is_known = false;
  };

  std::vector<Server> servers_;
  std::atomic<std::size_t> preferred_ = 0;
  mutable std::mutex mutex_;
  EtcdHistory history_;
};

}  // namespace everstep::elastic
