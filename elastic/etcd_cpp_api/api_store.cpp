#include <functional>
#include <future>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include <etcd/KeepAlive.hpp>
#include <grpc/support/log.h>

#include "elastic/etcd_cpp_api/api_clients.h"
#include "elastic/etcd_cpp_api/api_transaction.h"
#include "elastic/etcd_cpp_api/api_watch.h"
#include "elastic/etcd_cpp_api/txn_reads.h"

namespace everstep::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPauseAfterRound = milliseconds(50);

// What one server is asked, until `limit`. Nothing: it has answered.
using Ask = std::function<std::optional<CallFailure>(std::size_t server, ApiClock::time_point limit)>;

std::optional<CallFailure> failure_in(const etcd::Response& response, const std::string& url) {
  if (response.is_ok() || response.error_code() == etcd::ERROR_COMPARE_FAILED) return std::nullopt;
  return explain(response.error_code(), response.error_message(), url);
}

class ApiStore final : public KvStore {
 public:
  ApiStore(const std::vector<Endpoint>& endpoints, const EtcdOptions& options)
      : clients_(std::make_shared<ApiClients>(endpoints, options)) {}

  Result<TxnReply> transact(const Txn& txn, milliseconds deadline) override {
    const etcdv3::Transaction transaction = to_api(txn);
    const auto answer = checked_call([&](etcd::SyncClient& client) { return client.txn(transaction); },
                                     is_read_only(txn) ? Repeat::kFreely : Repeat::kNever, deadline);
    if (!answer) return answer.error();
    TxnReply reply{answer->is_ok(), answer->index(), {}};
    std::vector<KeyValue> items;
    for (const etcd::Value& value : answer->values()) items.push_back(from_api(value));
    auto reads = deal_out_reads(reply.succeeded ? txn.then : txn.otherwise, items, reply.revision);
    if (!reads) return reads.error();
    reply.reads = std::move(*reads);
    return reply;
  }

  // A lease that was granted without our knowledge goes unused, and by itself.
  Result<LeaseId> grant(seconds ttl, milliseconds deadline) override {
    const int time = static_cast<int>(ttl.count());
    const auto answer =
        checked_call([&](etcd::SyncClient& client) { return client.leasegrant(time); }, Repeat::kFreely, deadline);
    if (!answer) return answer.error();
    const LeaseId lease = answer->value().lease();
    const std::lock_guard lock(mutex_);
    times_to_live_[lease] = seconds(answer->value().ttl());
    return lease;
  }

  Result<seconds> renew(LeaseId lease, milliseconds deadline) override {
    EVERSTEP_TRY(
        call_apart([lease](etcd::SyncClient& client, const std::string& url) { return renew_once(client, url, lease); },
                   deadline));
    {
      const std::lock_guard lock(mutex_);
      const auto own = times_to_live_.find(lease);
      if (own != times_to_live_.end()) return own->second;
    }
    const auto left = checked_call([&](etcd::SyncClient& client) { return client.leasetimetolive(lease); },
                                   Repeat::kFreely, deadline);
    if (!left) return left.error();
    return seconds(left->value().ttl());
  }

  Status revoke(LeaseId lease, milliseconds deadline) override {
    EVERSTEP_TRY(call_apart([lease](etcd::SyncClient& client,
                                    const std::string& url) { return failure_in(client.leaserevoke(lease), url); },
                            deadline));
    const std::lock_guard lock(mutex_);
    times_to_live_.erase(lease);
    return {};
  }

  std::unique_ptr<Watch> watch(std::string prefix, WatchSink sink) override {
    return start_api_watch(clients_, std::move(prefix), std::move(sink));
  }

 private:
  Result<etcd::Response> checked_call(const std::function<etcd::Response(etcd::SyncClient&)>& ask, Repeat repeat,
                                      milliseconds deadline) {
    const Revision before = clients_->newest();
    std::optional<etcd::Response> response;
    std::string answerer;
    EVERSTEP_TRY(call(
        [&](std::size_t server, ApiClock::time_point limit) {
          answerer = clients_->url(server);
          response.emplace(ask(clients_->client(server, limit)));
          return failure_in(*response, answerer);
        },
        repeat, deadline));
    EVERSTEP_TRY(clients_->check_revision(response->index(), before, answerer));
    return *response;
  }

  // For what the library gives no time limit, or ends late: a thread of its own asks, and is left alone if it does not
  // come back in time.
  using AskApart = std::function<std::optional<CallFailure>(etcd::SyncClient& client, const std::string& url)>;
  Status call_apart(const AskApart& ask, milliseconds deadline) {
    return call(
        [&](std::size_t server, ApiClock::time_point limit) -> std::optional<CallFailure> {
          std::packaged_task<std::optional<CallFailure>()> task([clients = clients_, ask, server] {
            return ask(clients->unlimited_client(server), clients->url(server));
          });
          auto answer = task.get_future();
          std::thread(std::move(task)).detach();
          if (answer.wait_until(limit) == std::future_status::ready) return answer.get();
          return CallFailure{
              CallFailure::Kind::kUnknown,
              {ErrorCode::kDeadlineExceeded, "etcd at " + clients_->url(server) + " did not answer in time", {}}};
        },
        Repeat::kFreely, deadline);
  }

  Status call(const Ask& ask, Repeat repeat, milliseconds deadline) {
    const ApiClock::time_point end = ApiClock::now() + deadline;
    CallTries tries(clients_->size(), repeat);
    while (true) {
      const std::size_t server = clients_->preferred();
      const std::optional<CallFailure> failure = try_server(server, ask, end);
      if (!failure) return {};
      if (failure->kind != CallFailure::Kind::kFinal) {
        clients_->forget_cluster(server);
        clients_->leave(server);
      }
      if (tries.ends_after(*failure)) return failure->error;
      if (tries.is_round_over()) clients_->pause(clients_->preferred(), kPauseAfterRound);
      if (ApiClock::now() >= end) return tries.worst();
    }
  }

  std::optional<CallFailure> try_server(std::size_t server, const Ask& ask, ApiClock::time_point end) {
    const ApiClock::time_point limit = clients_->try_limit(end);
    etcd::SyncClient& client = clients_->client(server, limit);
    if (!clients_->is_tried(client, limit)) return not_connected(clients_->url(server));
    if (auto failure = clients_->cluster_failure(server, client)) return failure;
    return ask(server, limit);
  }

  // The library renews by itself one second before the end, from a thread that one error ends. Here its object lives
  // for one renewal; the time to live it is told is for that thread only, which then ends within a second.
  static std::optional<CallFailure> renew_once(etcd::SyncClient& client, const std::string& url, LeaseId lease) {
    constexpr int kUnused = 2;
    try {
      etcd::KeepAlive(client, kUnused, lease).Check();
    } catch (const std::out_of_range&) {
      return CallFailure{CallFailure::Kind::kFinal,
                         not_found("the lease " + std::to_string(lease) + " is gone from etcd")};
    } catch (const std::runtime_error& error) {
      return CallFailure{CallFailure::Kind::kUnknown,
                         {ErrorCode::kDeadlineExceeded, "etcd at " + url + ": " + error.what(), {}}};
    }
    return std::nullopt;
  }

  std::shared_ptr<ApiClients> clients_;
  std::mutex mutex_;
  std::map<LeaseId, seconds> times_to_live_;  // of leases granted here: the library does not tell it on renewal
};

}  // namespace

Result<std::unique_ptr<KvStore>> connect_etcd(const EtcdOptions& options) {
  const auto endpoints = checked_endpoints(options);
  if (!endpoints) return endpoints.error();
  gpr_set_log_function([](gpr_log_func_args*) {});  // what it would print is in the errors of calls
  return std::unique_ptr<KvStore>(std::make_unique<ApiStore>(*endpoints, options));
}

}  // namespace everstep::elastic
