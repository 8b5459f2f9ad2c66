#include "elastic/sim/world.h"

#include <utility>

#include "base/text.h"
#include "elastic/records.h"
#include "elastic/sim/process.h"

namespace everstep::elastic::sim {

World::World(std::uint64_t world_seed, Mutation mistake, std::function<void(const std::string&)> trace_sink)
    : seed(world_seed),
      mutation(mistake),
      oracle(*this),
      store(*this),
      network(*this),
      dice_(world_seed, 1),
      sink_(std::move(trace_sink)) {
  EVERSTEP_CHECK(store.execute({{}, {put(keys.spec(), job.spec)}}).ok(), "an empty store takes a spec");
}

World::~World() = default;

void World::tell(const std::string& who, const std::function<std::string()>& what) {
  if (!sink_) return;
  std::string time = fixed_text(to_seconds(now()), 4);
  time.insert(0, time.size() < 9 ? 9 - time.size() : 0, ' ');
  sink_(time + "  " + who + (who.size() < 9 ? std::string(9 - who.size(), ' ') : "") + "  " + what());
}

void World::violated(const std::string& oracle_name, const std::string& what) {
  tell("ORACLE", [&] { return oracle_name + ": " + what; });
  if (!violation) violation = Violation{oracle_name, what, now()};
}

Process& World::add_process() {
  const int number = static_cast<int>(processes.size());
  processes.push_back(std::make_unique<Process>(*this, number, "host-" + std::to_string(number)));
  return *processes.back();
}

Process* World::process_of(const WorkerId& id) {
  const auto found = addresses_.find(id);
  return found == addresses_.end() ? nullptr : processes[found->second].get();
}

std::vector<Process*> World::running() {
  std::vector<Process*> found;
  for (const auto& process : processes) {
    if (process->is_running()) found.push_back(process.get());
  }
  return found;
}

Process* World::leader() {
  const auto item = store.find(keys.leader());
  const auto record = item ? parse_leader(item->value) : invalid_argument("nobody leads");
  Process* process = record ? process_of(record->id) : nullptr;
  return process != nullptr && process->is_running() ? process : nullptr;
}

void World::call_operator(const std::string& why) {
  if (operator_wanted) return;
  tell("OPERATOR", [&] { return "is called: " + why; });
  operator_wanted = why;
}

}  // namespace everstep::elastic::sim
