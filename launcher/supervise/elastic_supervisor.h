#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/job/elastic_options.h"
#include "launcher/supervise/etcd_server.h"
#include "launcher/supervise/worker_processes.h"
#include "launcher/worker/control_message.h"

namespace everstep::launcher {

struct ElasticSupervision {
  ElasticSupervision(elastic::KvStore& kv, elastic::Keys job_keys, const SignalWatch& watch)
      : store(kv), keys(std::move(job_keys)), signals(watch) {}

  elastic::KvStore& store;
  elastic::Keys keys;
  const SignalWatch& signals;  // made before the threads of the store

  EtcdServer* own_etcd = nullptr;  // what `store` talks to, if it ends with this run
  std::string etcd_data;           // its directory
  MembershipOptions membership;
  std::int64_t steps = 0;     // of the job
  int workers = 1;            // to begin with
  std::string name_prefix{};  // of its workers' names: another host may have a "w0", too
  int seats = 0;              // so many workers have room on this host at a time; 0: any number
  // How to start the one that is called worker_name(number, prefix). No other that lives has its seat, the lowest that
  // is free.
  std::function<WorkerStart(int number, int seat)> worker;
  RestartPolicy restart = RestartPolicy::kNever;
  std::chrono::milliseconds last_words{15'000};  // how long others may stay once one worker's job was done

  // What workers say, each of them and in any order: see GenerationTally.
  std::function<void(const ElasticStep&)> on_step;
  std::function<void(const Validation&)> on_validation;
  std::function<void(const GenerationChanged&)> on_generation;
  std::function<void(const std::string& event)> on_event;
  std::function<void(int signal)> on_stop_request;  // the first signal that asks to leave
};

struct ElasticEnd {
  Outcome failure;                 // nothing: the job is done, or stopped as asked
  std::vector<Finished> finished;  // of the workers that saw the end
  bool left_to_others = false;     // the local workers had gone before: checkpoints tell what was reached
  bool etcd_was_away = false;      // why it failed: what came after the newest checkpoint is lost
  std::optional<int> stop_signal;  // what asked to leave, if anything did
  std::int64_t saves_skipped = 0;
  std::int64_t saves_failed = 0;
};

// "w3", or "host-b-w3"
std::string worker_name(int number, const std::string& prefix = {});

// Starts local workers of an elastic job and stays until all have ended; if the store is its own, also while workers
// that others started need it. One that dies ends nothing while others live; with RestartPolicy::kOnFailure another
// takes its place, after a pause that grows when that happens often. Starts more of them, or asks the newest to leave,
// when `everstep scale` says so. The first SIGINT, SIGTERM or SIGHUP asks the whole job to stop at the window's end, a
// second one (or the first before a step was made) ends the local workers at once. An etcd of its own that dies is
// started again. If etcd stays away for too long (OutageClock), also after a signal, the local workers are ended:
// nothing that they do can be saved. Whatever happens, none of them lives when it returns.
ElasticEnd supervise_elastic(const ElasticSupervision& supervision);

}  // namespace everstep::launcher
