#include "elastic/sim/simulation.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "elastic/sim/injector.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

// A lease, a hung op, an outage and a quarantine may follow each other.
constexpr Tick kLive = 180 * kSecond;
constexpr std::uint64_t kMostEvents = 20'000'000;

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : world_(options.seed, options.mutation, options.trace), dice_(options.seed, 3) {
    world_.job.schedule = options.schedule;
  }

  SimulationReport run() {
    set_up();
    const Tick safety = dice_.between(15, 60) * kSecond;
    Injector injector(world_, safety);
    injector.begin();
    run_until(safety, false);
    injector.stop();
    world_.tell("PHASE", [] { return "no more faults"; });
    bring_up_enough();
    commits_before_ = world_.oracle.commits();
    const Tick limit = world_.now() + kLive;
    run_until(limit, true);
    if (!world_.violation && !is_live()) {
      for (Process* process : world_.running()) world_.tell(process->name(), [&] { return process->state(); });
      world_.violated("LIVE", "no new HEAD within " + std::to_string(kLive / kSecond) + " s without faults");
    }
    if (!world_.violation) world_.oracle.check_retained();
    return report();
  }

 private:
  void set_up() {
    world_.job.min_workers = static_cast<int>(dice_.between(1, 3));
    const bool is_slow = dice_.one_in(4);  // so that somebody's time to leave is shorter than a window
    world_.job.round_time = (is_slow ? dice_.between(500, 1'500) : dice_.between(40, 400)) * kMillisecond;
    world_.job.save_every = is_slow ? 1 : dice_.between(1, 3);
    world_.job.redundancy = static_cast<int>(dice_.below(3));
    if (dice_.one_in(8)) world_.job.steps = dice_.between(5, 60);
    const std::int64_t workers = world_.job.min_workers + dice_.below(6);
    if (dice_.one_in(2)) world_.job.expected_workers = static_cast<int>(workers);
    for (std::int64_t left = workers; left > 0; --left) {
      Process& process = world_.add_process();
      const Tick after = dice_.one_in(3) ? dice_.below(20 * kSecond) : dice_.below(kSecond);
      world_.queue.after(after, [&process] { process.start(); });
    }
  }

  bool is_live() const { return world_.is_over || world_.oracle.commits() > commits_before_; }

  void run_until(Tick end, bool is_liveness) {
    world_.queue.at(end, [] {});
    while (!world_.violation && world_.now() < end && !world_.is_over) {
      if (is_liveness && is_live()) return;
      if (world_.operator_wanted && !is_operator_coming_) call_operator();
      if (!world_.queue.step()) return world_.violated("NOHANG", "nothing is left to happen");
      if (world_.queue.events() > kMostEvents) return world_.violated("NOHANG", "it goes round in circles");
    }
  }

  void bring_up_enough() {
    std::size_t healthy = 0;
    for (Process* process : world_.running()) {
      const bool stays = !process->is_stopped() && !process->ailments.hangs && !process->is_leaving();
      healthy += stays ? 1 : 0;
    }
    const auto wanted = static_cast<std::size_t>(world_.job.min_workers) + 1;
    for (; healthy < wanted; ++healthy) world_.add_process().start();
  }

  void call_operator() {
    is_operator_coming_ = true;
    world_.queue.after(3 * kSecond, [this] { resume(); });
  }

  // everstep resume: everybody is gone, and a new job goes on from the newest checkpoint that verifies.
  void resume() {
    ++resumes_;
    for (Process* process : world_.running()) process->kill();
    world_.store.reset();
    std::vector<HeadDocument> heads;
    Oracle::Traces traces;
    for (const std::string& path : world_.disk.list("")) {
      if (const auto name = parse_checkpoint_name(directory_of(path))) {
        traces.generation = std::max(traces.generation, name->generation);
      }
      if (!path.ends_with("/committed")) continue;
      const auto head = parse_head_document(*world_.disk.read(path));
      if (head) traces.sequence = std::max(traces.sequence, head->sequence);
      if (head && load_checkpoint(world_.disk, *head, false)) heads.push_back(*head);
    }
    std::sort(heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
    const auto from = heads.empty() ? std::nullopt : std::optional(heads.front());
    world_.tell("OPERATOR", [&] { return "resumes from " + (from ? to_string(from->name) : "the beginning"); });
    world_.oracle.on_resume(from, traces);
    world_.job.first_generation = traces.generation.next();
    Txn txn{{}, {put(world_.keys.spec(), world_.job.spec)}};
    if (from) {
      txn.then.push_back(put(world_.keys.head(), to_text(record_of(*from))));
      txn.then.push_back(put(world_.keys.past_head(from->sequence), to_text(record_of(*from))));
    }
    world_.oracle.pause(true);
    EVERSTEP_CHECK(world_.store.execute(txn).ok(), "an empty store takes a job");
    world_.oracle.pause(false);
    world_.operator_wanted.reset();
    is_operator_coming_ = false;
    for (int left = world_.job.min_workers + 1; left > 0; --left) world_.add_process().start();
  }

  SimulationReport report() const {
    SimulationReport report;
    if (world_.violation) {
      const Violation& found = *world_.violation;
      report.violation = found.oracle + ": " + found.what + ", at " + fixed_text(to_seconds(found.at), 4) + " s";
    }
    report.faults = world_.faults;
    report.simulated = world_.now();
    report.events = world_.queue.events();
    report.commits = world_.oracle.commits();
    report.generations = world_.oracle.generations();
    report.recoveries = world_.oracle.recoveries();
    report.group_stops = world_.oracle.group_stops();
    report.resumes = resumes_;
    report.shared_generations = world_.oracle.shared_generations();
    return report;
  }

  World world_;
  Dice dice_;
  std::int64_t commits_before_ = 0;
  std::int64_t resumes_ = 0;
  bool is_operator_coming_ = false;
};

}  // namespace

SimulationReport simulate(const SimulationOptions& options) { return Simulation(options).run(); }

}  // namespace everstep::elastic::sim
