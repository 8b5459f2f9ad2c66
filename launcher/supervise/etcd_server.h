#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "launcher/job/elastic_options.h"

namespace everstep::launcher {

// The etcd that a job on one machine runs for itself. It listens to this machine only, and takes nobody without one of
// its own certificates, which only the user who started it can read. It goes with this object or with the thread that
// started it; what it was told is on disk then, and another one goes on from there.
class EtcdServer {
 public:
  static constexpr std::chrono::seconds kUsualLimit{20};  // for a start

  // Starts it on the data and with the certificates of `directory`, all made if they are not there, and waits until it
  // answers. kNotFound: the program etcd is missing. kUnavailable: it does not come up within `limit`; the error names
  // the log.
  static Result<std::unique_ptr<EtcdServer>> start(const std::filesystem::path& directory,
                                                   const std::filesystem::path& log, std::chrono::milliseconds limit);

  virtual ~EtcdServer() = default;  // stops it

  virtual const EtcdAddress& address() const = 0;  // one URL, "https://127.0.0.1:…", and absolute paths
  virtual pid_t pid() const = 0;
  virtual bool is_running() = 0;

  // Whether it answers within `limit`.
  virtual bool answers(std::chrono::milliseconds limit) = 0;
  // One that has ended begins anew: same data, same addresses. Does not wait until it answers.
  virtual Status start_again() = 0;
  // As waitpid tells it; nothing while it runs.
  virtual std::optional<int> wait_status() const = 0;
  // The last thing that it said in this life, in plain words; empty: nothing.
  virtual std::string last_words() const = 0;
};

// Of what etcd has written, the line that tells why it ended: the last one that says it must, else the last of all.
// Without the time and the form of a log.
std::string last_words_of_etcd(std::string_view log);

}  // namespace everstep::launcher
