#include "trainer/socket/dialer.h"

#include <utility>

#include "trainer/socket/dialing.h"
#include "trainer/socket/plain_stream.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

Error no_way(const PeerAddress& address) {
  if (address.tcp) {
    return invalid_argument("this worker calls no other hosts, since it has no secret",
                            "give all workers of the job the same --secret-file");
  }
  return invalid_argument("it can be called on its own host only",
                          "workers on several hosts need a secret: (umask 077 && openssl rand -hex 32 > secret), then "
                          "--secret-file=secret");
}

}  // namespace

Result<std::unique_ptr<ByteStream>> Dialer::dial(const PeerAddress& address) const {
  Result<Call> call = begin(address);
  if (!call) return call.error();
  if (!call->socket.is_open()) return std::unique_ptr<ByteStream>();
  if (call->is_local) return make_plain_stream(std::move(call->socket));
  return ways_.tls->call(std::move(call->socket), {ways_.lineage, to_text(*address.tcp)});
}

Result<FileDescriptor> Dialer::knock(const PeerAddress& address) const {
  Result<Call> call = begin(address);
  if (!call) return call.error();
  return std::move(call->socket);
}

// Where the boot is the same and the path cannot be opened, the other one is in a container or a namespace.
Result<Dialer::Call> Dialer::begin(const PeerAddress& address) const {
  const bool has_tcp = address.tcp && ways_.tls != nullptr;
  if (address.local && !ways_.boot.empty() && address.local->boot == ways_.boot) {
    Result<FileDescriptor> socket = call_unix(address.local->path);
    if (socket) return Call{std::move(socket).value(), true};
    if (!has_tcp) return socket.error();
  }
  if (!has_tcp) return no_way(address);
  Result<FileDescriptor> socket = call_tcp(*address.tcp);
  if (!socket) return socket.error();
  return Call{std::move(socket).value(), false};
}

}  // namespace everstep::trainer
