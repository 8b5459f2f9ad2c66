#pragma once

#include <cstdint>
#include <functional>

#include "elastic/sim/dice.h"
#include "elastic/sim/fault.h"
#include "elastic/sim/traps.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {

// Draws what goes wrong when, in the first phase of a simulation.
class Injector {
 public:
  Injector(World& world, Tick until);

  void begin();
  // Everything is as it should be from now on: what was lost stays lost, what hangs hangs.
  void stop();

 private:
  void inject(Fault fault);
  void hit_processes(Fault fault);
  void hit_network(Fault fault);
  void hit_store(Fault fault);
  void hit_disk(Fault fault);
  void kill_at(Point point, int within, Fault fault);
  void stop_at(Point point, int within, Fault fault);
  void kill(Process& process, bool silently = false);
  void kill_some(std::size_t count, Tick within);
  void harm_later(Tick delay, std::function<void()> harm);  // unless the time for faults is over
  void restart_later(Process& process);
  void hang(Process& process);
  void flap(Process& process);
  void bring_a_crowd();
  void damage_a_file(Fault fault);
  void make_noise(double Noise::*kind, double probability);
  Process* anybody();

  World& world_;
  Dice dice_;
  const Tick until_;
};

}  // namespace everstep::elastic::sim
