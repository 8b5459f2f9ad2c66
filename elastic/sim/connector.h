#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "elastic/records.h"
#include "elastic/sim/network.h"
#include "elastic/view.h"

namespace everstep::elastic::sim {

class MemberLoop;

// This worker's end of the connections of one try.
struct Connection {
  RosterRecord roster;
  std::uint64_t token = 0;
  std::map<WorkerId, std::uint64_t> peers;  // their ends
  bool is_up = false;
  std::vector<Frame> inbox;  // came before the generation began
  std::optional<std::pair<WorkerId, bool>> lost;
};

// Connects to the members of generations to come, beside the training of the present one.
class Connector {
 public:
  explicit Connector(MemberLoop& self) : self_(self) {}

  void connect(const RosterRecord& roster, const View& view);
  void drop(const Attempt& attempt) { tries_.erase(attempt); }
  std::optional<Connection> take(const Attempt& attempt);  // what is up

  void take(const Hello& hello);
  void take(const Frame& frame);
  void peer_lost(const WorkerId& id, bool is_dead);

 private:
  bool is_for(const Hello& hello, const Connection& connection) const;
  void accept(Connection& connection, const Hello& hello);
  void fail(const Attempt& attempt, const WorkerId& lost, bool is_dead, const std::string& why);

  MemberLoop& self_;
  std::map<Attempt, Connection> tries_;
  std::vector<Hello> parked_;  // of tries that this worker does not know yet
};

}  // namespace everstep::elastic::sim
