#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "launcher/cli/child_process.h"

namespace everstep::launcher::chaos {

// Another host, as far as the network goes: a network namespace that reaches this one over a cable that can be cut. It
// and its cable (a veth pair with addresses of 198.18.0.0/15, which is set aside for tests) go with this object, or
// with the thread that made it. Needs root, `ip`, `tc`, `unshare` and `nsenter`.
class FarHost {
 public:
  enum class Cut {
    kAll,    // nothing comes or goes
    kEtcd,   // nothing gets from there to etcd
    kPeers,  // nothing gets from there to workers
  };

  static bool is_possible();

  static Result<std::unique_ptr<FarHost>> start(const std::filesystem::path& log);

  FarHost(const FarHost&) = delete;
  FarHost& operator=(const FarHost&) = delete;
  ~FarHost() = default;

  // Where workers here are reached from both sides, where etcd is, and where workers there are.
  std::string near_address() const { return network_ + ".1"; }
  std::string etcd_address() const { return network_ + ".5"; }
  std::string far_address() const { return network_ + ".2"; }

  // What stands before a command line so that it runs there.
  std::vector<std::string> prefix() const;
  pid_t pid() const { return holder_.pid(); }

  Status cut(Cut cut);
  // The cable carries 64 KiB a second in each direction, and loses what does not fit into a short queue.
  Status thin();
  Status heal();

 private:
  FarHost(std::string network, ChildProcess holder, std::filesystem::path log)
      : network_(std::move(network)), log_(std::move(log)), holder_(std::move(holder)) {}

  Status connect();
  Status ip(const std::vector<std::string>& words) const;        // here
  Status ip_there(const std::vector<std::string>& words) const;  // there
  Status run_there(const std::vector<std::string>& words) const;

  const std::string network_;  // "198.18.7"
  const std::filesystem::path log_;
  ChildProcess holder_;  // keeps the namespace
  std::vector<std::string> lost_there_;
  bool is_lost_here_ = false;
  bool is_thin_ = false;
};

}  // namespace everstep::launcher::chaos
