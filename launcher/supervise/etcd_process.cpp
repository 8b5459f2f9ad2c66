#include "launcher/supervise/etcd_process.h"

#include <cstdint>
#include <cstdlib>
#include <random>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

// What etcd takes from the environment was meant for another one, but for this: whether it may run on this machine.
std::vector<std::string> environment_of_etcd() {
  std::vector<std::string> kept = environment_without("ETCD_");
  const std::string name = "ETCD_UNSUPPORTED_ARCH";
  if (const char* machine = std::getenv(name.c_str())) kept.push_back(name + "=" + machine);
  return kept;
}

}  // namespace

Result<ChildProcess> start_etcd(const std::vector<std::string>& args, const std::filesystem::path& log,
                                std::vector<std::string> prefix) {
  std::vector<std::string> words = std::move(prefix);
  words.emplace_back("etcd");
  words.insert(words.end(), args.begin(), args.end());
  auto process = ChildProcess::start(std::move(words), log, environment_of_etcd());
  if (process || process.error().code != ErrorCode::kNotFound) return process;
  return not_found("there is no program etcd here", "install the package etcd-server");
}

int unused_port() {
  constexpr int kLowest = 10'000;
  constexpr int kHighest = 30'000;
  std::random_device device;
  while (true) {
    const int port = std::uniform_int_distribution(kLowest, kHighest)(device);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EVERSTEP_CHECK(socket >= 0, "cannot make a socket");
    const bool is_free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (is_free) return port;
  }
}

}  // namespace everstep::launcher
