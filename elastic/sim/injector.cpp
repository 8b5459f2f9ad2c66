#include "elastic/sim/injector.h"

#include <algorithm>
#include <utility>

#include "elastic/sim/process.h"

namespace everstep::elastic::sim {

Injector::Injector(World& world, Tick until) : world_(world), dice_(world.seed, 2), until_(until) {}

void Injector::begin() {
  const std::int64_t faults = dice_.between(1, 9);
  for (std::int64_t left = faults; left > 0; --left) {
    // The last one comes with the seed: see bad_gradient().
    Fault fault = all_faults()[dice_.below(std::ssize(all_faults()) - 1)];
    // A crowd is worth seeing now and then, and takes as long as fifty other faults.
    if (fault == Fault::kCrowdJoins && !dice_.one_in(12)) fault = Fault::kMostKilled;
    world_.queue.at(dice_.between(2'000, until_ / kMillisecond) * kMillisecond, [this, fault] { inject(fault); });
  }
  if (dice_.one_in(3)) make_noise(&Noise::reply_lost, 0.02);
  if (dice_.one_in(3)) make_noise(&Noise::request_late, 0.02);
  if (dice_.one_in(4)) make_noise(&Noise::request_refused, 0.02);
  if (dice_.one_in(4)) make_noise(&Noise::watch_wrong, 0.02);
}

void Injector::stop() {
  world_.noise = {};
  world_.traps.clear();
  world_.network.heal();
  world_.store.come_back();
  world_.disk.is_full = false;
  world_.disk.failing_syncs = 0;
  for (Process* process : world_.running()) process->ailments.cut_from_store_until = 0;
}

Process* Injector::anybody() {
  const std::vector<Process*> running = world_.running();
  return running.empty() ? nullptr : running[dice_.below(std::ssize(running))];
}

void Injector::inject(Fault fault) {
  if (world_.now() >= until_ || world_.is_over) return;
  const int number = number_of(fault);
  world_.tell("FAULT", [&] { return "F" + std::to_string(number) + ": " + std::string(to_string(fault)); });
  hit_processes(fault);
  hit_network(fault);
  hit_store(fault);
  hit_disk(fault);
}

void Injector::harm_later(Tick delay, std::function<void()> harm) {
  world_.queue.after(delay, [this, harm = std::move(harm)] {
    if (world_.now() < until_) harm();
  });
}

void Injector::restart_later(Process& process) {
  if (dice_.one_in(5)) return;
  world_.queue.after(dice_.between(10, 8'000) * kMillisecond, [&process] { process.start(); });
}

void Injector::kill(Process& process, bool silently) {
  process.kill(silently);
  restart_later(process);
}

void Injector::kill_at(Point point, int within, Fault fault) {
  world_.traps.set(point, static_cast<int>(dice_.between(1, within)), [this, fault](Process& process) {
    world_.faults.add(fault);
    kill(process);
  });
}

void Injector::stop_at(Point point, int within, Fault fault) {
  world_.traps.set(point, static_cast<int>(dice_.between(1, within)), [this, fault](Process& process) {
    world_.faults.add(fault);
    process.stop(world_.now() + 3 * world_.job.lease_ttl + dice_.below(2 * kSecond));
  });
}

void Injector::kill_some(std::size_t count, Tick within) {
  std::vector<Process*> running = world_.running();
  while (count > 0 && !running.empty()) {
    const auto at = running.begin() + dice_.below(std::ssize(running));
    Process& process = **at;
    running.erase(at);
    harm_later(dice_.below(within + 1), [this, &process] { kill(process); });
    --count;
  }
}

void Injector::hang(Process& process) {
  process.ailments.hangs = true;
  if (dice_.one_in(2)) return;  // until somebody finds out
  world_.queue.after(dice_.between(20, 50) * kSecond, [this, &process, life = process.life()] {
    if (process.life() == life) kill(process);
  });
}

void Injector::flap(Process& process) {
  for (int times = 1; times <= 8; ++times) {
    harm_later(times * (1'500 * kMillisecond), [&process] {
      process.kill();
      process.start();
    });
  }
}

void Injector::bring_a_crowd() {
  for (int number = 0; number < 64; ++number) {
    Process& process = world_.add_process();
    // Or another secret, which does not open the job's spec: both are refused alike.
    if (number % 4 == 1 || number % 4 == 2) process.spec = "another spec";
    world_.queue.after(dice_.below(kSecond), [&process] { process.start(); });
    if (number % 16 == 0) continue;
    harm_later(dice_.between(4, 15) * kSecond, [&process] { process.kill(); });
  }
}

void Injector::hit_processes(Fault fault) {
  Process* victim = anybody();
  if (victim == nullptr) return;
  bool has_hit = true;
  switch (fault) {
    case Fault::kKilledComputing:
      has_hit = false;
      kill_at(Point::kRound, 10, fault);
      break;
    case Fault::kKilledWriting:
      has_hit = false;
      kill_at(Point::kWritingShard, 40, fault);
      break;
    case Fault::kKilledAfterAck:
      has_hit = false;
      kill_at(Point::kAcknowledged, 8, fault);
      break;
    case Fault::kKilledInExchange:
      has_hit = false;
      kill_at(Point::kExchange, 8, fault);
      break;
    case Fault::kLeaderKilled:
      has_hit = false;
      kill_at(Point::kLeading, 6, fault);
      break;
    case Fault::kKilledInRecovery:
      has_hit = false;
      kill(*victim);
      kill_at(dice_.one_in(2) ? Point::kRestoring : Point::kConnecting, 3, fault);
      break;
    case Fault::kStoppedPastLease:
      has_hit = false;
      stop_at(static_cast<Point>(dice_.below(10)), 5, fault);
      break;
    case Fault::kLeaderStoppedBeforeCommit:
      has_hit = false;
      stop_at(dice_.one_in(2) ? Point::kBeforeCommit : Point::kBeforeManifest, 3, fault);
      break;
    case Fault::kStaleCleanUp:
      has_hit = false;
      stop_at(Point::kCleaningUp, 6, fault);
      break;
    case Fault::kLeaves:
      victim->ask_to_leave("SIGTERM", dice_.one_in(3) ? 0 : dice_.between(1'000, 12'000));
      restart_later(*victim);
      break;
    case Fault::kLeavesInAHurry:
      victim->ask_to_leave("notice", dice_.between(200, 3'000));
      harm_later(dice_.between(100, 3'000) * kMillisecond, [this, victim] { kill(*victim); });
      break;
    case Fault::kAllKilled:
      kill_some(world_.running().size(), dice_.one_in(2) ? 0 : kSecond);
      break;
    case Fault::kMostKilled:
      kill_some(world_.running().size() / 2 + 1, 50 * kMillisecond);
      break;
    case Fault::kOutOfMemory:
      kill(*victim);
      break;
    case Fault::kHalfOpen:
      kill(*victim, true);
      break;
    case Fault::kComputeHangs:
      hang(*victim);
      break;
    case Fault::kFlapping:
      flap(*victim);
      break;
    case Fault::kCrowdJoins:
      bring_a_crowd();
      break;
    case Fault::kWallClockJumps:
      victim->ailments.wall_clock_error += dice_.one_in(2) ? 3600 * kSecond : -3600 * kSecond;
      break;
    default:
      has_hit = false;
  }
  if (has_hit) world_.faults.add(fault);
}

void Injector::hit_network(Fault fault) {
  Process* victim = anybody();
  Process* other = anybody();
  if (victim == nullptr) return;
  const Tick until = world_.now() + dice_.between(500, 15'000) * kMillisecond;
  if (fault == Fault::kCutFromPeers) world_.network.isolate(victim->number(), until);
  if (fault == Fault::kOneWayCut) {
    if (victim == other) return;
    world_.network.cut(victim->number(), other->number(), until);
  }
  if (fault == Fault::kSlowNetwork) {
    world_.noise.slowness = static_cast<int>(dice_.between(10, 60));
    world_.queue.at(until, [this] { world_.noise.slowness = 1; });
  }
  if (fault == Fault::kCorruptedFrame) make_noise(&Noise::frame_corrupted, 0.02);
  if (fault == Fault::kReplayedConnection) make_noise(&Noise::frame_replayed, 0.1);
  const bool counts = fault == Fault::kCutFromPeers || fault == Fault::kOneWayCut || fault == Fault::kSlowNetwork;
  if (counts) world_.faults.add(fault);
}

void Injector::make_noise(double Noise::*kind, double probability) {
  world_.noise.*kind = probability;
  world_.queue.after(dice_.between(5, 40) * kSecond, [this, kind] { world_.noise.*kind = 0; });
}

void Injector::hit_store(Fault fault) {
  Process* victim = anybody();
  if (victim == nullptr) return;
  const Tick now = world_.now();
  const Tick ttl = world_.job.lease_ttl;
  bool has_hit = true;
  switch (fault) {
    case Fault::kLeaderCutFromStore:
    case Fault::kCutFromStore:
      if (fault == Fault::kLeaderCutFromStore) victim = world_.leader();
      if (victim == nullptr) return;
      victim->ailments.cut_from_store_until = now + dice_.between(ttl / 2, 4 * ttl);
      break;
    case Fault::kMinorityPartition:
      victim->ailments.cut_from_store_until = now + dice_.below(2 * kSecond);
      break;
    case Fault::kStoreLeaderLost:
      world_.store.go_away(now + dice_.between(500, 2'000) * kMillisecond);
      break;
    case Fault::kStoreRolledOver:
      for (const Tick after : {0, 4, 8}) {
        harm_later(after * kSecond,
                   [this] { world_.store.go_away(world_.now() + dice_.between(300, 1'500) * kMillisecond); });
      }
      break;
    case Fault::kStoreAway:
      world_.store.go_away(now + dice_.between(ttl, 7 * ttl));
      break;
    case Fault::kLeaseRevoked: {
      const auto members = world_.store.list(world_.keys.members());
      if (members.empty()) return;
      world_.store.expire(members[dice_.below(std::ssize(members))].lease);
      break;
    }
    case Fault::kStoreReplaced:
      world_.store.take_snapshot();
      harm_later(dice_.between(1, 10) * kSecond, [this] {
        world_.faults.add(Fault::kStoreReplaced);
        world_.oracle.pause(true);  // what happens in a store that went back in time counts for nothing
        world_.store.replace(dice_.one_in(2));
        world_.call_operator("the store is another one");
      });
      return;
    case Fault::kReplyLost:
      has_hit = false;
      make_noise(dice_.one_in(2) ? &Noise::reply_lost : &Noise::request_late, 0.15);
      break;
    case Fault::kCompaction:
      has_hit = false;
      make_noise(&Noise::compaction, 0.1);
      break;
    case Fault::kWatchEventsWrong:
      has_hit = false;
      make_noise(&Noise::watch_wrong, 0.2);
      break;
    case Fault::kStaleRead:
      has_hit = false;
      make_noise(&Noise::stale_read, 0.2);
      make_noise(&Noise::lease_lie, 0.5);
      break;
    default:
      has_hit = false;
  }
  if (has_hit) world_.faults.add(fault);
}

void Injector::hit_disk(Fault fault) {
  switch (fault) {
    case Fault::kDiskFull:
      world_.faults.add(fault);
      world_.disk.is_full = true;
      world_.queue.after(dice_.between(1, 8) * kSecond, [this] { world_.disk.is_full = false; });
      break;
    case Fault::kSyncFails:
      world_.faults.add(fault);
      world_.disk.failing_syncs = static_cast<int>(dice_.between(1, 3));
      break;
    case Fault::kPowerCut:
      world_.faults.add(fault);
      kill_some(world_.running().size(), 0);
      world_.queue.after(0, [this] {
        world_.disk.cut_power(dice_);
        world_.oracle.check_retained();
      });
      break;
    case Fault::kFileDamaged:
    case Fault::kFileDeleted:
      damage_a_file(fault);
      break;
    default:
      break;
  }
}

// Of the newest checkpoint; found when everybody starts from it again.
void Injector::damage_a_file(Fault fault) {
  const auto& head = world_.oracle.head();
  if (!head) return;
  std::vector<std::string> files;
  for (const std::string& path : world_.disk.list(to_string(head->name) + "/")) {
    if (path.find("/block-") != std::string::npos || path.find("/manifest-") != std::string::npos)
      files.push_back(path);
  }
  if (files.empty()) return;
  const std::string path = files[dice_.below(std::ssize(files))];
  world_.faults.add(fault);
  world_.oracle.on_damage(head->name);
  world_.tell("DISK", [&] { return path + (fault == Fault::kFileDamaged ? " is damaged" : " is deleted"); });
  if (fault == Fault::kFileDamaged) {
    world_.disk.damage(path, dice_);
  } else {
    (void)world_.disk.remove(path);
  }
  kill_some(world_.running().size(), 0);
}

}  // namespace everstep::elastic::sim
