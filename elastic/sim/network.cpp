#include "elastic/sim/network.h"

#include <algorithm>

#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {

Tick Network::latency() { return world_.dice().between(kMillisecond / 10, 2 * kMillisecond) * world_.noise.slowness; }

bool Network::is_cut(int from, int to) const {
  const auto found = cuts_.find({from, to});
  return found != cuts_.end() && world_.now() < found->second;
}

void Network::carry(int from, int to, const std::function<void(Process&)>& deliver) {
  Process& receiver = *world_.processes[to];
  const std::uint64_t life = receiver.life();
  const Tick heals = is_cut(from, to) ? cuts_.at({from, to}) - world_.now() : 0;
  world_.queue.after(heals + latency(), [this, to, life, deliver] {
    Process& target = *world_.processes[to];
    if (target.life() == life) target.later(0, [deliver, &target] { deliver(target); });
  });
}

void Network::send(const Hello& hello) {
  Process* from = world_.process_of(hello.from);
  Process* to = world_.process_of(hello.to);
  if (from == nullptr || to == nullptr) return;
  const auto deliver = [hello](Process& process) { process.take(hello); };
  carry(from->number(), to->number(), deliver);
  if (!world_.dice().with(world_.noise.frame_replayed)) return;
  world_.faults.add(Fault::kReplayedConnection);
  const int number = to->number();
  world_.queue.after(world_.dice().below(15 * kSecond), [this, number, deliver] {
    world_.processes[number]->later(0, [this, number, deliver] { deliver(*world_.processes[number]); });
  });
}

void Network::send(const Frame& frame) {
  Process* from = world_.process_of(frame.from);
  Process* to = world_.process_of(frame.to);
  if (from == nullptr || to == nullptr) return;
  Frame carried = frame;
  if (frame.kind == Frame::Kind::kExchange && world_.dice().with(world_.noise.frame_corrupted)) {
    world_.faults.add(Fault::kCorruptedFrame);
    carried.is_corrupted = true;
  }
  carry(from->number(), to->number(), [carried](Process& process) { process.take(carried); });
  if (!world_.dice().with(world_.noise.frame_replayed)) return;
  world_.faults.add(Fault::kReplayedConnection);
  const int number = to->number();
  world_.queue.after(kMillisecond * world_.dice().between(100, 12'000), [this, number, frame] {
    world_.processes[number]->later(0, [this, number, frame] { world_.processes[number]->take(frame); });
  });
}

void Network::cut(int from, int to, Tick until) {
  Tick& end = cuts_[{from, to}];
  end = std::max(end, until);
  world_.queue.after(kSilence + latency(), [this, from, to] {
    if (is_cut(from, to)) notice_cut(from, to);
  });
}

void Network::isolate(int process, Tick until) {
  for (int other = 0; other < std::ssize(world_.processes); ++other) {
    if (other == process) continue;
    cut(process, other, until);
    cut(other, process, until);
  }
}

void Network::heal() { cuts_.clear(); }

// Both ends find that nothing is acknowledged any more; a system may report that as a closed connection or as silence.
void Network::notice_cut(int one, int other) {
  const bool is_closed = world_.dice().one_in(2);
  for (const auto& [self, peer] : {std::pair(one, other), std::pair(other, one)}) {
    const auto id = world_.processes[peer]->worker_id();
    Process& process = *world_.processes[self];
    if (id)
      process.later(world_.dice().below(50 * kMillisecond),
                    [&process, id, is_closed] { process.peer_lost(*id, is_closed); });
  }
}

void Network::on_death(const Process& process, const WorkerId& id, bool silently) {
  for (const auto& other : world_.processes) {
    if (other->number() == process.number()) continue;
    const bool unheard = silently || is_cut(process.number(), other->number());
    Process& peer = *other;
    peer.later(unheard ? kSilence : latency(), [&peer, id] { peer.peer_lost(id, true); });
  }
}

}  // namespace everstep::elastic::sim
