#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "elastic/etcd_client.h"
#include "elastic/kv_store.h"
#include "launcher/cli/child_process.h"
#include "tests/temporary_directory.h"

namespace everstep::elastic {

// Names of PEM files. Servers that have them talk https, and ask clients for certificates that `ca` signed.
struct ServerCertificates {
  std::string ca;
  std::string certificate;
  std::string key;
};

// Real etcd servers, one or three, with data of their own; on the loopback device, unless another address is given. The
// constructor returns when they answer; everything is gone with the object, and with the test's process.
class EtcdCluster {
 public:
  explicit EtcdCluster(int servers = 1, std::optional<ServerCertificates> certificates = std::nullopt,
                       std::vector<std::string> more_arguments = {}, std::string address = "127.0.0.1");

  int size() const { return static_cast<int>(servers_.size()); }
  const std::string& endpoint(int server) const { return servers_[server].url; }
  std::vector<std::string> endpoints() const;
  // A client of all servers; plain text only.
  std::unique_ptr<KvStore> connect() const;

  void kill(int server);          // as by a loss of power
  void freeze(int server) const;  // it keeps its connections and answers nothing
  void thaw(int server) const;
  void restart(int server);         // on its own data; does not wait until it answers
  void wipe(int server);            // kills it and deletes its data
  void keep_copy(int server);       // of its data; it is killed for that
  void restore_copy(int server);    // the next start goes on from there
  void wait_until_healthy() const;  // a write goes through

  // The server that leads, asked from `server`.
  int leader(int server) const;
  // Forgets the history up to the present.
  void compact(int server) const;
  // Gives space that is not used back, and takes writes again.
  void make_room(int server) const;

 private:
  struct Server {
    std::string name;
    std::string url;
    std::string peer_url;
    std::optional<launcher::ChildProcess> process{};
  };

  bool try_to_start(int servers);
  void start(Server& server) const;
  std::string ask(int server, const std::string& path, const std::string& body) const;
  std::uint64_t number_in(const std::string& answer, const std::string& field) const;

  TemporaryDirectory directory_;
  std::optional<ServerCertificates> certificates_;
  std::vector<std::string> more_arguments_;
  std::string address_;
  std::vector<Server> servers_;
};

// Waits until it is true, polling; false if it never is.
template <typename Condition>
bool becomes_true(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace everstep::elastic
