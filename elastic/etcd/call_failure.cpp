#include "elastic/etcd/call_failure.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace everstep::elastic {
namespace {

using Kind = CallFailure::Kind;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// gRPC's words for a connection that was never there, then etcd's for requests that it turned away at its door.
// Everything else that gRPC calls UNAVAILABLE, such as a connection that broke or "request timed out", tells nothing.
bool was_turned_away(const std::string& message) {
  constexpr std::array<std::string_view, 6> kWords = {"failed to connect to all addresses",
                                                      "connections to all backends failing",
                                                      "DNS resolution failed",
                                                      "etcdserver: no leader",
                                                      "etcdserver: too many requests",
                                                      "etcdserver: not capable"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view words) { return contains(message, words); });
}

std::string hint_for(const std::string& message) {
  const bool is_tls = contains(message, "andshake") || contains(message, "certificate") || contains(message, "SSL") ||
                      contains(message, "ssl");
  return is_tls
             ? "the certificate of one side is expired, or not signed by the authority that the other side trusts, or "
               "one side speaks plain text"
             : "";
}

}  // namespace

CallFailure explain(const grpc::Status& status, const std::string& url) {
  const std::string& message = status.error_message();
  const std::string told = "etcd at " + url + ": " + message;
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
      return {Kind::kFinal, not_found(told)};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (contains(message, "database space exceeded")) {
        return {Kind::kFinal,
                {ErrorCode::kUnavailable, "etcd at " + url + " is out of space and takes no more writes",
                 "compact and defragment it, then run: etcdctl alarm disarm"}};
      }
      if (was_turned_away(message)) return {Kind::kNotExecuted, {ErrorCode::kUnavailable, told, {}}};
      return {Kind::kFinal, invalid_argument(told)};
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
      return {Kind::kFinal, invalid_argument(told)};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {Kind::kUnknown, {ErrorCode::kDeadlineExceeded, "etcd at " + url + " did not answer in time", {}}};
    default:
      break;
  }
  if (was_turned_away(message)) return {Kind::kNotExecuted, {ErrorCode::kUnavailable, told, hint_for(message)}};
  return {Kind::kUnknown, {ErrorCode::kDeadlineExceeded, told, hint_for(message)}};
}

CallFailure not_connected(const std::string& url) {
  return {Kind::kNotExecuted, {ErrorCode::kUnavailable, "etcd at " + url + " does not take connections", {}}};
}

}  // namespace everstep::elastic
