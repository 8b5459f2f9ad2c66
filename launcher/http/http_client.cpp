#include "launcher/http/http_client.h"

#include <cstddef>

#include <httplib.h>

#include "base/text.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestBody = std::size_t{64} << 10;

Error no_answer(const HttpRequest& request, const std::string& why) {
  return {ErrorCode::kUnavailable, request.method + " " + request.base + request.path + ": " + why, ""};
}

}  // namespace

Status check_http_base(const std::string& base) {
  constexpr std::string_view kScheme = "http://";
  const auto refuse = [&] {
    return invalid_argument("'" + base + "' is no address of a server", "write http://HOST or http://HOST:PORT");
  };
  if (!base.starts_with(kScheme)) return refuse();
  std::string_view rest = base;
  rest.remove_prefix(kScheme.size());
  const bool has_other_parts = rest.find_first_of("/?#@ ") != std::string_view::npos;
  const std::size_t port = rest.starts_with('[') ? rest.find("]:") : rest.find(':');
  if (has_other_parts || rest.empty() || port == 0) return refuse();
  if (port == std::string_view::npos) return {};
  const auto number = parse_number<int>(rest.substr(rest.find_last_of(':') + 1));
  if (!number || *number < 1 || *number > 65535) return refuse();
  return {};
}

Result<HttpReply> fetch_http(const HttpRequest& request) {
  httplib::Client client(request.base);
  if (!client.is_valid()) return no_answer(request, "not an address");
  client.set_connection_timeout(request.timeout);
  client.set_read_timeout(request.timeout);
  client.set_write_timeout(request.timeout);
  client.set_decompress(false);
  HttpReply reply;
  httplib::Request wire;
  wire.method = request.method;
  wire.path = request.path;
  for (const auto& [name, value] : request.headers) wire.headers.emplace(name, value);
  wire.content_receiver = [&reply](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    if (reply.body.size() + size > kLargestBody) return false;
    reply.body.append(data, size);
    return true;
  };
  const httplib::Result result = client.send(wire);
  if (!result) return no_answer(request, httplib::to_string(result.error()));
  reply.status = result->status;
  return reply;
}

}  // namespace everstep::launcher
