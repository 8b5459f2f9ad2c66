#include "elastic/etcd_call.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace everstep::elastic {
namespace {

using Kind = CallFailure::Kind;

// gRPC's numbers.
enum Code {
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kUnauthenticated = 16,
};

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

// A server that refuses a certificate often just hangs up, as one does that expects no TLS.
std::string hint_for(const std::string& message, const std::string& url) {
  const bool is_tls = url.starts_with("https:") && !contains(message, "refused") && !contains(message, "DNS");
  return is_tls || contains(message, "andshake")
             ? "the certificate of one side is expired, or not signed by the authority that the other side trusts, or "
               "one side speaks plain text"
             : "";
}

// What gRPC says of a connection that it could not make, without its preface.
std::string cause_in(const std::string& message) {
  constexpr std::string_view kPreface = "last error: ";
  const std::size_t at = message.find(kPreface);
  return at == std::string::npos ? message : message.substr(at + kPreface.size());
}

}  // namespace

CallFailure explain(int code, const std::string& message, const std::string& url) {
  const std::string told = "etcd at " + url + ": " + message;
  switch (code) {
    case kNotFound:
      return {Kind::kFinal, not_found(told)};
    case kResourceExhausted:
      if (contains(message, "database space exceeded")) {
        return {Kind::kFinal,
                {ErrorCode::kUnavailable, "etcd at " + url + " is out of space and takes no more writes",
                 "compact and defragment it, then run: etcdctl alarm disarm"}};
      }
      if (was_turned_away(message)) return {Kind::kNotExecuted, {ErrorCode::kUnavailable, told, {}}};
      return {Kind::kFinal, invalid_argument(told)};
    case kInvalidArgument:
    case kPermissionDenied:
    case kUnauthenticated:
    case kFailedPrecondition:
    case kAlreadyExists:
    case kOutOfRange:
    case kUnimplemented:
      return {Kind::kFinal, invalid_argument(told)};
    case kDeadlineExceeded:
      return {Kind::kUnknown, {ErrorCode::kDeadlineExceeded, "etcd at " + url + " did not answer in time", {}}};
    default:
      break;
  }
  if (was_turned_away(message)) {
    return {Kind::kNotExecuted,
            {ErrorCode::kUnavailable, "etcd at " + url + ": " + cause_in(message), hint_for(message, url)}};
  }
  return {Kind::kUnknown, {ErrorCode::kDeadlineExceeded, told, {}}};
}

CallFailure not_connected(const std::string& url) {
  return {Kind::kNotExecuted, {ErrorCode::kUnavailable, "etcd at " + url + " does not take connections", {}}};
}

bool CallTries::ends_after(const CallFailure& failure) {
  ++failures_;
  const bool is_unknown = failure.kind == Kind::kUnknown;
  if (is_unknown || !worst_ || worst_->kind == Kind::kNotExecuted) worst_ = failure;
  return failure.kind == Kind::kFinal || (is_unknown && repeat_ == Repeat::kNever);
}

KeyRange range_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  // etcd's word for "to the last key" is a zero byte, which also is the first key there can be.
  const std::string zero(1, '\0');
  if (end.empty()) return {prefix.empty() ? zero : std::string(prefix), zero};
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::string(prefix), end};
}

}  // namespace everstep::elastic
