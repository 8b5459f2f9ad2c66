#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "elastic/etcd_client.h"
#include "elastic/etcd_endpoint.h"

namespace everstep::elastic {

using EtcdClock = std::chrono::steady_clock;  // the wall clock may jump

// The same moment for gRPC, which takes no steady clock.
gpr_timespec grpc_deadline(EtcdClock::time_point limit);

// A connection per server, and the one that all calls go to until it fails. For any thread.
class Channels {
 public:
  // At least one endpoint, all of them checked.
  Channels(const std::vector<Endpoint>& endpoints, const EtcdOptions& options);

  std::size_t size() const { return channels_.size(); }
  const std::string& url(std::size_t index) const { return endpoints_[index].url; }
  const std::shared_ptr<grpc::Channel>& channel(std::size_t index) const { return channels_[index]; }

  std::size_t preferred() const { return preferred_; }
  // Whoever found this server failing moves on to the next; only the first of several does.
  void leave(std::size_t index) { preferred_.compare_exchange_strong(index, (index + 1) % size()); }

  // How long one server may take: with others to ask, not all the time there is.
  EtcdClock::time_point try_limit(EtcdClock::time_point deadline) const;

  // Waits until the server is connected, or known not to be: a call then says why. False: not even that in time.
  bool is_tried_before(std::size_t index, EtcdClock::time_point limit) const;

  // Lets time pass after a failure. gRPC makes progress with a connection only while somebody waits for it.
  void pause_until(std::size_t index, EtcdClock::time_point limit) const;

 private:
  std::vector<Endpoint> endpoints_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::atomic<std::size_t> preferred_ = 0;
};

// A server that lost its leader answers so at once, instead of keeping the call.
void require_leader(grpc::ClientContext& context);

}  // namespace everstep::elastic
