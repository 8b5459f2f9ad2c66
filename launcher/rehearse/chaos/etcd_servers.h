#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/child_process.h"

namespace everstep::launcher::chaos {

struct EtcdPlaces {
  struct Host {
    std::vector<std::string> prefix;  // stands before a command line so that it runs there
    std::string address;              // there
  };
  std::string other_address{};  // of this host: all listen to that too, besides 127.0.0.1; empty: there is none
  std::optional<Host> last{};   // where the last of them is, if that is another host: it reaches `other_address`
};

// One etcd server, or three that are one cluster, on the loopback device if no other place is named, with their data in
// a directory. All end with this object or with the thread that started them.
class EtcdServers {
 public:
  // Returns when all of them answer. kNotFound: there is no program etcd. kUnavailable: they do not come up in time.
  static Result<std::unique_ptr<EtcdServers>> start(int servers, std::filesystem::path directory,
                                                    EtcdPlaces places = {});

  int size() const { return static_cast<int>(servers_.size()); }
  std::string endpoints() const;        // with commas between them, as --etcd takes them
  std::string other_endpoints() const;  // the same under the other address
  std::vector<std::string> urls() const;

  // The one that leads by its own word; the first that runs if none says so.
  int leader() const;
  void kill(int server);          // as by a loss of power
  Status restart(int server);     // on its own data; does not wait until it answers
  void freeze(int server) const;  // it keeps its connections and answers nothing
  void thaw(int server) const;
  bool answers(int server) const;  // within half a second
  void kill_all();                 // nobody needs them any more, nor what they know

 private:
  struct Server {
    std::string name;
    std::string url;
    std::string other_url;  // empty: there is none
    std::string peer_url;
    std::vector<std::string> prefix{};
    std::optional<ChildProcess> process{};
  };

  EtcdServers(std::filesystem::path directory, EtcdPlaces places)
      : directory_(std::move(directory)), places_(std::move(places)) {}

  Status start_all(int servers);
  Status start_one(Server& server) const;

  const std::filesystem::path directory_;
  const EtcdPlaces places_;
  std::vector<Server> servers_;
};

}  // namespace everstep::launcher::chaos
