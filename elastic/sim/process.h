#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/tick.h"
#include "elastic/brain/decision.h"
#include "elastic/sim/network.h"

namespace everstep::elastic::sim {

class MemberLoop;
class World;

// What a process does differently from a healthy one.
struct Ailments {
  bool hangs = false;  // in the next op that it computes
  Tick cut_from_store_until = 0;
  Tick wall_clock_error = 0;  // which nothing may depend on
};

// A worker's process: it is started, runs incarnations one after the other, is stopped and continued, leaves or dies.
class Process {
 public:
  Process(World& world, int number, std::string host);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  const std::string& host() const { return host_; }
  std::uint64_t life() const { return life_; }
  bool is_running() const { return runs_; }
  bool is_stopped() const { return is_stopped_; }
  bool is_leaving() const { return notice_.has_value(); }
  std::optional<WorkerId> worker_id() const;
  std::string state() const;  // for people

  // Lets something happen in this process: never after it has died, and not while it is stopped.
  void later(Tick delay, std::function<void()> action);

  void start();
  void kill(bool silently = false);
  void stop(Tick until);
  void ask_to_leave(const std::string& reason, std::int64_t within_ms);

  // Called by its loop.
  void rejoin(Tick after);
  void exit(const std::optional<Error>& error);

  // From the network.
  void take(const Hello& hello);
  void take(const Frame& frame);
  void peer_lost(const WorkerId& id, bool is_dead);

  // Whether this is the store that it has known all the time.
  bool recognises(std::int64_t store);
  bool is_cut_from_store() const;
  bool may_renew() const;  // it makes progress

  // How its clocks read for deadlines.
  Tick now() const;

  World& world() { return world_; }
  Ailments ailments;
  Tick computing_since = -1;     // −1: it does not compute
  std::string spec;              // what it believes the job is
  std::int64_t data_cursor = 0;  // only a mistake looks at it

 private:
  void begin_incarnation();

  World& world_;
  const int number_;
  const std::string name_;
  const std::string host_;
  bool runs_ = false;
  bool is_stopped_ = false;
  std::uint64_t life_ = 0;
  std::uint64_t stops_ = 0;
  std::vector<std::function<void()>> deferred_;
  std::int64_t store_identity_ = 0;
  std::optional<LeaveAsked> notice_;
  std::optional<WorkerId> last_id_;
  std::shared_ptr<MemberLoop> loop_;
};

}  // namespace everstep::elastic::sim
