#include "elastic/brain/suspicion.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace everstep::elastic {
namespace {

using Graph = std::map<WorkerId, std::set<WorkerId>>;  // who is at odds with whom; nobody without an edge

constexpr std::size_t kMostTried = 20;  // beyond it, one by one: the search takes up to 2^n steps

void drop(Graph& graph, const WorkerId& id) {
  for (const WorkerId& other : graph[id]) {
    graph[other].erase(id);
    if (graph[other].empty()) graph.erase(other);
  }
  graph.erase(id);
}

WorkerId most_at_odds(const Graph& graph) {
  return std::max_element(graph.begin(), graph.end(),
                          [](const auto& a, const auto& b) { return a.second.size() <= b.second.size(); })
      ->first;
}

bool is_better(const std::set<WorkerId>& a, const std::set<WorkerId>& b) {
  return a.size() != b.size() ? a.size() > b.size() : a < b;
}

// The largest set of `all` without an edge inside it.
std::set<WorkerId> largest_at_peace(Graph graph, std::set<WorkerId> all) {
  if (graph.empty()) return all;
  const WorkerId id = most_at_odds(graph);
  const bool tries_both = graph.size() <= kMostTried;
  std::set<WorkerId> without = all;
  Graph rest = graph;
  drop(rest, id);
  without.erase(id);
  without = largest_at_peace(rest, std::move(without));
  if (!tries_both) return without;
  for (const WorkerId& other : std::set<WorkerId>(graph[id])) {
    drop(graph, other);
    all.erase(other);
  }
  std::set<WorkerId> with = largest_at_peace(std::move(graph), std::move(all));
  return is_better(with, without) ? with : without;
}

}  // namespace

std::set<WorkerId> outcasts(const std::vector<WorkerId>& workers,
                            const std::set<std::pair<WorkerId, WorkerId>>& suspicions,
                            const std::set<WorkerId>& answered) {
  const std::set<WorkerId> all(workers.begin(), workers.end());
  std::set<WorkerId> out;
  Graph graph;
  for (const auto& [who, by] : suspicions) {
    if (!all.contains(who) || !all.contains(by) || who == by) continue;
    graph[who].insert(by);
    graph[by].insert(who);
    if (!answered.contains(who)) out.insert(who);
  }
  if (!out.empty()) return out;
  const std::set<WorkerId> kept = largest_at_peace(std::move(graph), all);
  std::set_difference(all.begin(), all.end(), kept.begin(), kept.end(), std::inserter(out, out.end()));
  return out;
}

}  // namespace everstep::elastic
