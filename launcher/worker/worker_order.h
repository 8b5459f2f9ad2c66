#pragma once

#include <optional>
#include <string>
#include <vector>

#include "elastic/kv_store.h"
#include "launcher/job/device_options.h"
#include "launcher/job/elastic_options.h"
#include "launcher/job/job_setup.h"
#include "launcher/worker/reach.h"

namespace everstep::launcher {

// What one worker process of an elastic job is told on its command line; all else is in the job's spec.
struct WorkerOrder {
  Config config;  // the options below as they were given
  EtcdAddress etcd;
  HostOptions host;
  std::string job;
  std::string name;                      // for people; empty: to be chosen
  std::string host_name;                 // as the job knows this host; empty: as the system does
  std::string secret;                    // what the file holds
  std::string output;                    // directory for what it writes beside checkpoints; empty: none
  std::optional<DeviceName> device;      // nothing: a free one of the job's kind
  std::optional<std::string> transport;  // nothing: as the job says
  double slowdown = 1;                   // how many times as long as it has to it computes
  bool supervised = false;               // it has a control socket on kControlDescriptor
};

// Of `everstep worker`; everstep-worker itself has --supervised besides.
std::vector<OptionSpec> worker_order_options();

WorkerOrder read_worker_order(const Config& config, Outcome& failure);
Result<WorkerOrder> read_worker_order(const std::vector<std::string>& args);

// As the job knows the host that this worker is on.
std::string host_of(const WorkerOrder& order);

// Whom this worker can reach, by what it is told, and who can reach it.
Reach reach_of(const WorkerOrder& order);

// Every option of the list that is set in `config`, for everstep-worker.
std::vector<std::string> worker_order_arguments(const Config& config);

// A job as a worker takes part in it.
struct JoinedJob {
  FoundJob found;
  Config config;
  TrainRequest request;  // workers: 1; the plan is made from those who are there
  MembershipOptions membership;
  DeviceName device;      // of this worker
  std::string transport;  // of this worker: what of the job's it has
};

// Waits for nothing. Refuses what check_same_job refuses: the order may name other paths than the spec, but not other
// data, and another device of the job's kind, but not of another kind.
Result<JoinedJob> read_job(elastic::KvStore& store, const WorkerOrder& order);

}  // namespace everstep::launcher
