#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "launcher/elastic/elastic_options.h"

namespace everstep::launcher {

// The etcd that a job on one machine runs for itself. It listens to this machine only, and takes nobody without one of
// its own certificates, which only the user who started it can read. It goes with this object or with the thread that
// started it; what it was told is on disk then, and another one goes on from there.
class EtcdServer {
 public:
  // Starts it on the data and with the certificates of `directory`, all made if they are not there, and waits until it
  // answers. kNotFound: the program etcd is missing. kUnavailable: it does not come up within `limit`; the error names
  // the log.
  static Result<std::unique_ptr<EtcdServer>> start(const std::filesystem::path& directory,
                                                   const std::filesystem::path& log, std::chrono::milliseconds limit);

  virtual ~EtcdServer() = default;  // stops it

  virtual const EtcdAddress& address() const = 0;  // one URL, "https://127.0.0.1:…", and absolute paths
  virtual pid_t pid() const = 0;
  virtual bool is_running() = 0;
};

}  // namespace everstep::launcher
