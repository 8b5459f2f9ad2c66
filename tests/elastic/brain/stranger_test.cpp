// Somebody who may write to the store, but does not know the job's secret, does to every kind of key whatever can be
// done, at several moments of a job's life.
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "elastic/sim/disk.h"
#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using History = std::map<std::string, std::vector<std::string>>;  // the values that each key ever had

RecordSeal seal_of(const Keys& keys) {
  return {keys, [](std::string_view text) {
            const std::string digest = sim::digest_of("secret" + std::string(text));
            return (digest + digest + digest + digest).substr(0, 64);
          }};
}

// A job's life in steps: three workers start, a fourth joins, one leaves, one dies, two come, and all stop.
class Life {
 public:
  static constexpr int kSteps = 9;

  Life() { cluster.seal = seal_of(cluster.keys()); }

  void live(int step) {
    if (step == 0) {
      for (const int number : {1, 2, 3}) cluster.add(number);
      cluster.run_until_quiet(3000);
    }
    if (step == 1) make_first_updates();
    if (step == 2) cluster.write({{}, {commit(1)}});
    if (step == 3) cluster.add(4);
    if (step == 4) make_first_updates();
    if (step == 5 && lives(3)) cluster.tell(3, LeaveAsked{"SIGTERM", 0});
    if (step == 6 && lives(2)) cluster.kill(2);
    if (step == 7) {
      if (cluster.store().revision() > 0) cluster.write({{}, {commit(2)}});
      cluster.add(5);
    }
    if (step == 8) make_first_updates();
    cluster.run_until_quiet(100);
    cluster.run_until_quiet(40'000);
  }

  bool lives(std::uint64_t number) { return cluster.is_there(number); }

  void make_first_updates() {
    for (std::uint64_t number = 1; number <= 5; ++number) {
      if (!lives(number) || !cluster.at(number).running) continue;
      cluster.tell(number, FirstUpdate{cluster.at(number).running->roster.attempt});
    }
  }

  // As the leader would, which knows the secret.
  KvOp commit(std::int64_t sequence) const {
    const auto generation = cluster.generation();
    const HeadRecord head{sequence,
                          generation ? generation->roster.attempt.generation : Generation{1},
                          {8 * sequence},
                          std::string(64, 'c'),
                          ""};
    return put(cluster.keys().head(), cluster.seal.seal(cluster.keys().head(), to_text(head)));
  }

  // Nobody ever trains in two generations at once, or in one that is older than what it was in before.
  void expect_sane(const std::string& attack) {
    std::set<Attempt> running;
    for (std::uint64_t number = 1; number <= 5; ++number) {
      if (!lives(number)) continue;
      if (cluster.at(number).running) running.insert(cluster.at(number).running->roster.attempt);
      Generation last;
      for (const Begin& begin : cluster.effects_of<Begin>(number)) {
        EXPECT_GT(begin.generation.roster.attempt.generation, last) << attack;
        last = begin.generation.roster.attempt.generation;
        EXPECT_TRUE(opened_.contains(to_text(begin.generation))) << attack << ": a generation that nobody opened";
      }
    }
    EXPECT_LE(running.size(), 1U) << attack;
  }

  // Everything that workers have written; what strangers write is told from it by the seal.
  void learn() {
    KvModel copy = cluster.store();
    const auto events = copy.events_after(0, cluster.keys().prefix());
    if (!events) return;
    for (const WatchEvent& event : *events) {
      const auto value = cluster.seal.open(event.item.key, event.item.value);
      if (event.deleted || !value || event.item.key == cluster.keys().spec()) continue;
      if (event.item.key == cluster.keys().generation()) opened_.insert(*value);
      std::vector<std::string>& known = history[event.item.key];
      if (known.empty() || known.back() != event.item.value) known.push_back(event.item.value);
    }
  }

  SmallCluster cluster;
  History history;

 private:
  std::set<std::string> opened_;
};

// By what follows "live/": "held", "ckpt", "gen".
std::vector<std::string> one_of_each_kind(const History& history) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, values] : history) keys[key.substr(0, key.find('/', Keys("job").live().size()))] = key;
  std::vector<std::string> found;
  for (const auto& [kind, key] : keys) found.push_back(key);
  return found;
}

// What can be done to a key at that moment: garbage, nothing at all, each value that it ever had, and those of others.
std::vector<KvOp> attacks_on(const std::string& key, const History& history) {
  std::vector<KvOp> attacks{put(key, ""), put(key, "garbage\n"), remove(key)};
  for (const std::string& value : history.at(key)) attacks.push_back(put(key, value));
  for (const std::string& other : one_of_each_kind(history)) {
    if (other != key) attacks.push_back(put(key, history.at(other).back()));
  }
  return attacks;
}

TEST(Stranger, CanMakeNobodyTrainWhatNobodyOpened) {
  Life undisturbed;
  std::vector<History> known;
  for (int step = 0; step < Life::kSteps; ++step) {
    undisturbed.live(step);
    undisturbed.learn();
    undisturbed.expect_sane("none");
    known.push_back(undisturbed.history);
  }
  ASSERT_TRUE(undisturbed.cluster.ended_with_data_loss.empty());
  const std::int64_t reached = undisturbed.cluster.generation()->roster.attempt.generation.value;
  EXPECT_GE(reached, 4);
  int attacks = 0;
  int ends = 0;
  for (const int moment : {1, 4, 6}) {
    for (const std::string& key : one_of_each_kind(known[moment])) {
      for (const KvOp& attack : attacks_on(key, known[moment])) {
        ++attacks;
        const std::string name = "after step " + std::to_string(moment) + ": " +
                                 (attack.kind == KvOp::Kind::kPut ? "put " : "remove ") + key + "\n" + attack.value;
        Life life;
        for (int step = 0; step < Life::kSteps; ++step) {
          life.live(step);
          if (step == moment) life.cluster.write({{}, {attack}});
        }
        life.cluster.run_until_quiet(40'000);
        life.learn();
        life.expect_sane(name);
        const bool decides = key == life.cluster.keys().generation() || key == life.cluster.keys().head();
        if (!decides) {
          EXPECT_TRUE(life.cluster.ended_with_data_loss.empty()) << name;
          EXPECT_GE(life.cluster.generation()->roster.attempt.generation.value, moment < 2 ? 1 : 2) << name;
        }
        ends += life.cluster.ended_with_data_loss.empty() ? 0 : 1;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(attacks, 300);
  EXPECT_GT(ends, 5) << "generations and HEADs that were deleted or played again";
}

}  // namespace
}  // namespace everstep::elastic::test
