#include "elastic/etcd/channels.h"

#include <algorithm>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

namespace everstep::elastic {
namespace {

constexpr auto kTryLimit = std::chrono::milliseconds(500);
constexpr int kLargestReply = 64 << 20;

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  // Only the caller knows what may be sent twice.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A server that comes back is found at once; gRPC would wait for up to two minutes. The last is what one try to
  // connect may take.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  // etcd refuses pings that come more often than every 5 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kLargestReply);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const Endpoint& endpoint, const EtcdOptions& options) {
  if (!endpoint.secure) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = options.ca;
  tls.pem_cert_chain = options.certificate;
  tls.pem_private_key = options.key;
  return grpc::SslCredentials(tls);
}

}  // namespace

Channels::Channels(const std::vector<Endpoint>& endpoints, const EtcdOptions& options) : endpoints_(endpoints) {
  for (const Endpoint& endpoint : endpoints) {
    channels_.push_back(
        grpc::CreateCustomChannel(endpoint.target, credentials_for(endpoint, options), channel_arguments()));
  }
}

EtcdClock::time_point Channels::try_limit(EtcdClock::time_point deadline) const {
  return size() == 1 ? deadline : std::min(deadline, EtcdClock::now() + kTryLimit);
}

bool Channels::is_tried_before(std::size_t index, EtcdClock::time_point limit) const {
  grpc::Channel& channel = *channels_[index];
  while (true) {
    const grpc_connectivity_state state = channel.GetState(true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE) return true;
    if (!channel.WaitForStateChange(state, grpc_deadline(limit))) return false;
  }
}

void Channels::pause_until(std::size_t index, EtcdClock::time_point limit) const {
  grpc::Channel& channel = *channels_[index];
  (void)channel.WaitForStateChange(channel.GetState(true), grpc_deadline(limit));
}

gpr_timespec grpc_deadline(EtcdClock::time_point limit) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(limit - EtcdClock::now());
  return gpr_time_from_micros(left.count(), GPR_TIMESPAN);
}

void require_leader(grpc::ClientContext& context) { context.AddMetadata("hasleader", "true"); }

}  // namespace everstep::elastic
