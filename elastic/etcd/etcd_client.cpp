#include "elastic/etcd_client.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include <grpc/support/log.h>

#include "elastic/etcd/channels.h"
#include "elastic/etcd/etcd.grpc.pb.h"
#include "elastic/etcd/etcd_watch.h"
#include "elastic/etcd/history_check.h"
#include "elastic/etcd/messages.h"
#include "elastic/etcd_call.h"

namespace everstep::elastic {
namespace {

constexpr auto kPauseAfterRound = std::chrono::milliseconds(50);

// What one server is asked: fills in the reply.
template <typename Reply>
using Ask = std::function<grpc::Status(const std::shared_ptr<grpc::Channel>&, grpc::ClientContext&, Reply&)>;

class EtcdClient final : public KvStore {
 public:
  EtcdClient(const std::vector<Endpoint>& endpoints, const EtcdOptions& options)
      : channels_(std::make_shared<Channels>(endpoints, options)), history_(std::make_shared<HistoryCheck>()) {}

  Result<TxnReply> transact(const Txn& txn, std::chrono::milliseconds deadline) override {
    const EtcdClock::time_point end = EtcdClock::now() + deadline;
    const bool reads_only = is_read_only(txn);
    const etcdserverpb::TxnRequest request = to_message(txn);
    const Revision before = history_->newest();
    while (true) {
      const auto answer = send(request, reads_only ? Repeat::kFreely : Repeat::kNever, end);
      if (!answer) return answer.error();
      const Status is_new = history_->check_revision(answer->reply.header(), before, answer->url);
      if (is_new) return from_message(answer->reply, txn);
      if (!reads_only) return is_new.error();
      // Some versions of etcd read from the past after a pause. Only a write, even one without effect, tells for sure.
      EVERSTEP_TRY(check_by_writing(before, end));
    }
  }

  Result<LeaseId> grant(std::chrono::seconds ttl, std::chrono::milliseconds deadline) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_id(new_lease_id());
    request.set_ttl(ttl.count());
    const Revision before = history_->newest();
    const auto answer = call<etcdserverpb::LeaseGrantResponse>(
        [&](const auto& channel, grpc::ClientContext& context, auto& reply) {
          return etcdserverpb::Lease::NewStub(channel)->LeaseGrant(&context, request, &reply);
        },
        Repeat::kFreely, EtcdClock::now() + deadline);
    // An earlier try was executed after all.
    if (!answer && answer.error().message.ends_with("lease already exists")) return request.id();
    if (!answer) return answer.error();
    EVERSTEP_TRY(history_->check_revision(answer->reply.header(), before, answer->url));
    return answer->reply.id();
  }

  Result<std::chrono::seconds> renew(LeaseId lease, std::chrono::milliseconds deadline) override {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    const auto answer = call<etcdserverpb::LeaseKeepAliveResponse>(
        [&](const auto& channel, grpc::ClientContext& context, auto& reply) {
          const auto stream = etcdserverpb::Lease::NewStub(channel)->LeaseKeepAlive(&context);
          const bool has_answered = stream->Write(request) && stream->WritesDone() && stream->Read(&reply);
          const grpc::Status status = stream->Finish();
          if (!has_answered && status.ok()) return grpc::Status(grpc::StatusCode::UNKNOWN, "no answer to a renewal");
          return has_answered ? grpc::Status::OK : status;
        },
        Repeat::kFreely, EtcdClock::now() + deadline);
    if (!answer) return answer.error();
    if (answer->reply.ttl() <= 0) return not_found("the lease " + std::to_string(lease) + " is gone from etcd");
    return std::chrono::seconds(answer->reply.ttl());
  }

  Status revoke(LeaseId lease, std::chrono::milliseconds deadline) override {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    const auto answer = call<etcdserverpb::LeaseRevokeResponse>(
        [&](const auto& channel, grpc::ClientContext& context, auto& reply) {
          return etcdserverpb::Lease::NewStub(channel)->LeaseRevoke(&context, request, &reply);
        },
        Repeat::kFreely, EtcdClock::now() + deadline);
    if (!answer) return answer.error();
    return {};
  }

  std::unique_ptr<Watch> watch(std::string prefix, WatchSink sink) override {
    return start_etcd_watch(channels_, history_, std::move(prefix), std::move(sink));
  }

 private:
  template <typename Reply>
  struct Answer {
    Reply reply;
    std::string url;  // of the server that gave it
  };

  template <typename Reply>
  Result<Answer<Reply>> call(const Ask<Reply>& ask, Repeat repeat, EtcdClock::time_point end) {
    CallTries tries(channels_->size(), repeat);
    while (true) {
      const std::size_t server = channels_->preferred();
      Answer<Reply> answer{{}, channels_->url(server)};
      const std::optional<CallFailure> failure = try_server(server, ask, answer.reply, channels_->try_limit(end));
      if (!failure) {
        EVERSTEP_TRY(history_->check_cluster(answer.reply.header(), answer.url));
        return answer;
      }
      if (failure->kind != CallFailure::Kind::kFinal) channels_->leave(server);
      if (tries.ends_after(*failure)) return failure->error;
      if (tries.is_round_over()) {
        channels_->pause_until(channels_->preferred(), std::min(end, EtcdClock::now() + kPauseAfterRound));
      }
      if (EtcdClock::now() >= end) return tries.worst();
    }
  }

  template <typename Reply>
  std::optional<CallFailure> try_server(std::size_t server, const Ask<Reply>& ask, Reply& reply,
                                        EtcdClock::time_point limit) {
    const std::string& url = channels_->url(server);
    if (!channels_->is_tried_before(server, limit)) return not_connected(url);
    grpc::ClientContext context;
    context.set_deadline(grpc_deadline(limit));
    require_leader(context);
    const grpc::Status status = ask(channels_->channel(server), context, reply);
    if (status.ok()) return std::nullopt;
    return explain(status.error_code(), status.error_message(), url);
  }

  Result<Answer<etcdserverpb::TxnResponse>> send(const etcdserverpb::TxnRequest& request, Repeat repeat,
                                                 EtcdClock::time_point end) {
    return call<etcdserverpb::TxnResponse>(
        [&](const auto& channel, grpc::ClientContext& context, auto& reply) {
          return etcdserverpb::KV::NewStub(channel)->Txn(&context, request, &reply);
        },
        repeat, end);
  }

  // Deletes a key that nobody has: the servers have to agree on it, and it changes nothing.
  Status check_by_writing(Revision before, EtcdClock::time_point end) {
    const auto answer = send(to_message({{}, {remove(std::string(1, '\0'))}}), Repeat::kFreely, end);
    if (!answer) return answer.error();
    return history_->check_revision(answer->reply.header(), before, answer->url);
  }

  // Chosen here, so that granting it twice is granting it once.
  static LeaseId new_lease_id() {
    std::random_device device;
    return std::uniform_int_distribution<LeaseId>(1)(device);
  }

  std::shared_ptr<Channels> channels_;
  std::shared_ptr<HistoryCheck> history_;
};

}  // namespace

Result<std::unique_ptr<KvStore>> connect_etcd(const EtcdOptions& options) {
  const auto endpoints = checked_endpoints(options);
  if (!endpoints) return endpoints.error();
  gpr_set_log_function([](gpr_log_func_args*) {});  // what it would print is in the errors of calls
  return std::unique_ptr<KvStore>(std::make_unique<EtcdClient>(*endpoints, options));
}

}  // namespace everstep::elastic
