#include "elastic/sim/process.h"

#include <algorithm>
#include <utility>

#include "elastic/sim/member_loop.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

// An op that takes longer than this hangs.
constexpr Tick kLongestOp = 30 * kSecond;

}  // namespace

Process::Process(World& world, int number, std::string host)
    : spec(world.job.spec),
      world_(world),
      number_(number),
      name_("worker-" + std::to_string(number)),
      host_(std::move(host)) {}

Process::~Process() = default;

void Process::later(Tick delay, std::function<void()> action) {
  world_.queue.after(delay, [this, life = life_, action = std::move(action)] {
    if (life != life_ || !runs_) return;
    if (is_stopped_) {
      deferred_.push_back(action);
    } else {
      action();
    }
  });
}

void Process::start() {
  if (runs_) return;
  runs_ = true;
  ++life_;
  store_identity_ = 0;
  notice_.reset();
  last_id_.reset();
  computing_since = -1;
  ailments.hangs = false;
  world_.tell(name_, [] { return "starts"; });
  // Loads code and data before it is a member.
  later(world_.dice().between(50, 400) * kMillisecond, [this] { begin_incarnation(); });
}

void Process::begin_incarnation() {
  WorkerId id{{world_.dice().bits(), world_.dice().bits()}};
  if (world_.mutation == Mutation::kRejoinAsBefore && last_id_) id = *last_id_;
  last_id_ = id;
  loop_ = std::make_shared<MemberLoop>(*this, id);
  loop_->begin();
  if (notice_) loop_->tell(*notice_);
}

void Process::kill(bool silently) {
  if (!runs_) return;
  world_.tell(name_, [&] { return silently ? "dies without a word" : "is killed"; });
  runs_ = false;
  is_stopped_ = false;
  ++life_;
  deferred_.clear();
  const auto id = worker_id();
  // Whoever is at work in it ends when it returns.
  world_.queue.after(0, [gone = std::move(loop_)] {});
  loop_.reset();
  if (id) world_.network.on_death(*this, *id, silently);
}

void Process::stop(Tick until) {
  if (!runs_ || is_stopped_) return;
  world_.tell(name_, [&] { return "is stopped for " + std::to_string((until - world_.now()) / kMillisecond) + " ms"; });
  is_stopped_ = true;
  world_.queue.at(until, [this, life = life_] {
    if (life != life_ || !is_stopped_) return;
    world_.tell(name_, [] { return "is continued"; });
    is_stopped_ = false;
    for (auto& action : std::exchange(deferred_, {})) later(0, std::move(action));
  });
}

void Process::ask_to_leave(const std::string& reason, std::int64_t within_ms) {
  if (!runs_) return;
  world_.tell(name_, [&] { return "is asked to leave within " + std::to_string(within_ms) + " ms"; });
  notice_ = LeaveAsked{reason, within_ms};
  if (loop_) loop_->tell(*notice_);
}

void Process::rejoin(Tick after) {
  world_.queue.after(0, [gone = std::move(loop_)] {});
  loop_.reset();
  computing_since = -1;
  if (notice_) return exit(Error{ErrorCode::kCancelled, "left as asked", ""});
  later(std::max<Tick>(after, kMillisecond), [this] { begin_incarnation(); });
}

void Process::exit(const std::optional<Error>& error) {
  world_.tell(name_, [&] { return "exits: " + (error ? error->line() : "the job is finished"); });
  world_.queue.after(0, [gone = std::move(loop_)] {});
  loop_.reset();
  runs_ = false;
  ++life_;
  if (!error) {
    world_.is_over = true;
    return;
  }
  const bool is_expected = error->code == ErrorCode::kCancelled || error->code == ErrorCode::kDataLoss;
  const bool is_stranger = spec != world_.job.spec;
  if (error->code == ErrorCode::kDataLoss) world_.call_operator(error->message);
  if (!is_expected && !is_stranger && !world_.operator_wanted) world_.violated("EXIT", name_ + ": " + error->line());
}

std::optional<WorkerId> Process::worker_id() const { return loop_ ? std::optional(loop_->id()) : std::nullopt; }

std::string Process::state() const {
  if (is_stopped_) return "is stopped";
  return loop_ ? loop_->state() : "is between two incarnations";
}

void Process::take(const Hello& hello) {
  if (loop_) loop_->take(hello);
}

void Process::take(const Frame& frame) {
  if (loop_) loop_->take(frame);
}

void Process::peer_lost(const WorkerId& id, bool is_dead) {
  if (loop_) loop_->peer_lost(id, is_dead);
}

bool Process::recognises(std::int64_t store) {
  if (store_identity_ == 0) store_identity_ = store;
  return store_identity_ == store;
}

bool Process::is_cut_from_store() const { return world_.now() < ailments.cut_from_store_until; }

bool Process::may_renew() const {
  if (world_.mutation == Mutation::kAlwaysRenew) return true;
  return computing_since < 0 || world_.now() - computing_since < kLongestOp;
}

Tick Process::now() const {
  return world_.now() + (world_.mutation == Mutation::kWallClock ? ailments.wall_clock_error : 0);
}

}  // namespace everstep::elastic::sim
