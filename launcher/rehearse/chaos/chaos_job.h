#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/kv_store.h"
#include "elastic/records.h"
#include "launcher/cli/child_process.h"
#include "launcher/rehearse/chaos/etcd_servers.h"
#include "launcher/rehearse/chaos/far_host.h"
#include "launcher/rehearse/chaos/schedule.h"
#include "launcher/status/job_status.h"

namespace everstep::launcher::chaos {

inline constexpr std::chrono::milliseconds kLease{3000};
inline constexpr int kKeptCheckpoints = 3;
inline constexpr const char* kJobName = "job";

struct JobOrder {
  std::filesystem::path directory;    // of the run: logs and data
  std::filesystem::path checkpoints;  // --checkpoint-dir
  std::string etcd;                   // --etcd
  bool etcd_is_far = false;           // part of it: not on the loopback device
  std::string bind = "127.0.0.1";     // --bind
  bool tcp_only = false;              // --wire=tcp
  std::string device = "cpu";         // --device
  std::string transport = "auto";     // --transport
};

// The job's secret: made for it, and used for all that is asked about it.
inline std::filesystem::path secret_file(const std::filesystem::path& run_directory) {
  return run_directory / "secret";
}

struct WorkerProcess {
  std::string name;
  pid_t pid = -1;
  bool is_local = false;  // a child of `everstep train`; else one that we started with `everstep worker`
};

// How a process of the job ended, if that was not as it should.
struct BadEnd {
  std::string who;
  std::string how;
};

// A real job: `everstep train` with workers, and further ones by `everstep worker`. A tiny GPT whose result does not
// depend on the plan by one bit, that would train for ever, with a checkpoint every ten updates. All of its processes
// end with this object.
class ChaosJob {
 public:
  static Result<std::unique_ptr<ChaosJob>> start(const Schedule& schedule, const JobOrder& order,
                                                 const std::vector<std::string>& etcd_urls);

  // Those that live: of `everstep train` first, each by age.
  std::vector<WorkerProcess> workers();
  // Nothing: there is none, or etcd does not say.
  std::optional<WorkerProcess> leader();
  // Whether some of those that live are no members of the job yet, or etcd does not say.
  bool has_newcomers();
  bool train_is_running() { return train_.is_running(); }

  // SIGKILL: its end by that signal is no bad end from then on.
  void kill(const WorkerProcess& worker);
  // Somebody else will kill it.
  void expect_kill(const WorkerProcess& worker) { killed_.insert(worker.name); }
  // SIGSEGV: its end by that signal is no bad end from then on, if its log has a report of it.
  void crash(const WorkerProcess& worker);
  // SIGTERM: it leaves in order, or is ended by that signal if it has not begun to work yet.
  void terminate(const WorkerProcess& worker);
  // `everstep worker` with these further options.
  Result<WorkerProcess> join(const std::vector<std::string>& more = {});
  // The same on another host, and to etcd's other address.
  Result<WorkerProcess> join_from(const FarHost& host, const EtcdServers& etcd);
  // kNotFound: it is no member.
  Status revoke_lease(const WorkerProcess& worker);
  // Whether etcd has a word of it that it has saved its part of a checkpoint which is not committed yet.
  bool has_acked(const WorkerProcess& worker);
  // Asks `everstep train` for so many local workers more or fewer than there are.
  Status scale(int by);
  // A service manager starts what ended with "unreachable" again; so do we. Called every now and then.
  void revive();

  // Nothing: there is none yet, or etcd does not answer.
  std::optional<elastic::HeadRecord> head();
  // All keys of the job with their values. Fails if etcd does not answer.
  Result<std::vector<elastic::KeyValue>> keys();

  // Asks the job to save and to end, as Ctrl-C and `everstep stop` do. May be repeated.
  void ask_to_stop();
  bool has_ended();
  std::vector<std::string> still_running();
  // Once all have ended.
  std::vector<BadEnd> bad_ends() const;
  std::int64_t generations() const;  // that were trained in, by the log of `everstep train`

 private:
  struct Joined {
    std::string name;
    ChildProcess process;
    std::vector<std::string> words;
    int starts = 1;
  };

  ChaosJob(const JobOrder& order, std::string secret, ChildProcess train, std::unique_ptr<elastic::KvStore> store)
      : order_(order), secret_(std::move(secret)), train_(std::move(train)), store_(std::move(store)) {}

  bool open_store();

  Result<WorkerProcess> start_worker(std::vector<std::string> prefix, const std::vector<std::string>& more);
  Result<elastic::TxnReply> read(const std::string& prefix);
  std::optional<JobStatus> status();
  std::optional<elastic::KeyValue> member_key(const WorkerProcess& worker);
  std::string log_of_train() const;
  std::string log_of(const std::string& worker) const;
  bool is_good_end(const std::string& worker, int wait_status) const;
  std::filesystem::path log_path(const std::string& name) const { return order_.directory / (name + ".log"); }

  const JobOrder order_;
  const std::string secret_;
  ChildProcess train_;
  std::unique_ptr<elastic::KvStore> store_;  // sealed once is_open_
  bool is_open_ = false;
  std::vector<Joined> joined_;
  std::set<std::string> killed_;
  std::set<std::string> terminated_;
  std::set<std::string> crashed_;
  bool was_asked_ = false;
  int joins_ = 0;
};

}  // namespace everstep::launcher::chaos
