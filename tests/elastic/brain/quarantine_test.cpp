// Hosts whose workers die again and again: when they are shut out, for how long, and when that is forgotten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Tick kSecond = kTicksPerSecond;
constexpr Tick kSpan = 600 * kSecond;
constexpr const char* kBad = "bad-host";

// A coordinator that leads, on a good host, and whoever comes and goes on a bad one.
class Quarantine : public testing::Test {
 protected:
  Quarantine() {
    put_member(1, "good-host", MemberState::kReady);
    write({put(keys.leader(), to_text(LeaderRecord{worker(1), view.created(keys.member(worker(1)))}))});
    look(0);
  }

  void write(const std::vector<KvOp>& changes) {
    EVERSTEP_CHECK(store.apply({{}, changes}).ok(), "a write of the test");
    refresh();
  }

  void put_member(std::uint64_t number, const std::string& host, MemberState state) {
    const MemberRecord record{worker(number), "worker", host, "address", state, "", 0};
    write({put(keys.member(worker(number)), to_text(record))});
  }

  // One that comes to the bad host and is gone at that time, without a word or with one.
  void lose(Tick now, MemberState state = MemberState::kWarming) {
    put_member(++newest, kBad, state);
    look(now);
    write({remove(keys.member(worker(newest)))});
    look(now);
  }

  void look(Tick now) { carry_out(coordinator.step(Looked{}, view, now, 0), now); }

  void carry_out(const Decision& decision, Tick now) {
    for (const Effect& effect : decision.effects) {
      if (const auto* note = std::get_if<Note>(&effect)) notes.push_back(note->event);
      const auto* send = std::get_if<Send>(&effect);
      if (send == nullptr) continue;
      const Replied reply{send->request,
                          refuses ? Result<TxnReply>(TxnReply{false, store.revision(), {}}) : store.apply(send->txn)};
      refresh();
      carry_out(coordinator.step(reply, view, now, 0), now);
      if (!refuses) look(now);
    }
  }

  void refresh() {
    view.apply(*store.events_after(watched, keys.live()));
    watched = store.revision();
  }

  std::optional<QuarantineRecord> record() const {
    const KeyValue* item = view.find(keys.quarantine(kBad));
    return item == nullptr ? std::nullopt : std::optional(*parse_quarantine(item->value));
  }
  bool has_proposal() const { return view.find(keys.proposal()) != nullptr; }

  Keys keys{"job"};
  KvModel store;
  View view;
  Revision watched = 0;
  std::uint64_t newest = 1;
  bool refuses = false;
  std::uint32_t nonces = 0;
  std::vector<std::string> notes;
  Coordinator coordinator{CoordinatorOptions{.keys = keys,
                                             .self = worker(1),
                                             .first_generation = Generation{1},
                                             .prepare_limit = 10 * kSecond,
                                             .plan = wide_plan,
                                             .nonce = [this] { return ++nonces; }}};
};

TEST_F(Quarantine, ComesWithTheThirdLossWithinTenMinutes) {
  lose(kSecond);
  lose(300 * kSecond);
  EXPECT_EQ(record(), std::nullopt);
  lose(kSecond + kSpan);
  EXPECT_EQ(record(), (QuarantineRecord{1, 1}));
  EXPECT_THAT(notes, ElementsAre("event=host_shut_out host=bad-host seconds=1 times=1"));
}

TEST_F(Quarantine, NeedsThreeLossesWithinTenMinutes) {
  for (const Tick at : {kSecond, 301 * kSecond, 602 * kSecond, 903 * kSecond}) lose(at);
  EXPECT_EQ(record(), std::nullopt);
}

TEST_F(Quarantine, DoesNotComeForThoseWhoLeaveInOrder) {
  for (const Tick at : {1, 2, 3, 4}) lose(at * kSecond, MemberState::kLeaving);
  EXPECT_EQ(record(), std::nullopt);
}

TEST_F(Quarantine, LastsTwiceAsLongEachTimeUpToTenMinutes) {
  std::vector<std::int64_t> seconds;
  Tick now = kSecond;
  for (int time = 0; time < 12; ++time) {
    for (int i = 0; i < 3; ++i) lose(now);
    ASSERT_TRUE(record());
    EXPECT_EQ(record()->strikes, time + 1);
    seconds.push_back(record()->seconds);
    // A newcomer has to wait to the end of it, and no longer.
    put_member(++newest, kBad, MemberState::kReady);
    look(now + record()->seconds * kSecond - 1);
    EXPECT_FALSE(has_proposal()) << seconds.back();
    now += record()->seconds * kSecond;
    look(now);
    EXPECT_TRUE(has_proposal()) << seconds.back();
    put_member(newest, kBad, MemberState::kLeaving);
    look(now);
    EXPECT_FALSE(has_proposal());
    write({remove(keys.member(worker(newest)))});
    look(now);
  }
  EXPECT_THAT(seconds, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600));
}

TEST_F(Quarantine, IsForgottenAfterTenMinutesWithoutALossForEachTime) {
  for (int i = 0; i < 6; ++i) lose(kSecond);
  ASSERT_EQ(record(), (QuarantineRecord{2, 2}));
  Tick since = 3 * kSecond;  // when the second one was over
  look(since + 2 * kSpan - 1);
  ASSERT_EQ(record(), (QuarantineRecord{2, 2}));
  // A loss begins that time anew.
  since += 2 * kSpan - 1;
  lose(since);
  look(since + 2 * kSpan - 1);
  EXPECT_EQ(record(), (QuarantineRecord{2, 2}));
  notes.clear();
  look(since + 2 * kSpan);
  EXPECT_EQ(record(), std::nullopt);
  EXPECT_THAT(notes, ElementsAre("event=host_forgiven host=bad-host"));
  for (int i = 0; i < 3; ++i) lose(since + 3 * kSpan);
  EXPECT_EQ(record(), (QuarantineRecord{1, 1}));
}

TEST_F(Quarantine, IsAskedForAgainWhenTheStoreRefusesIt) {
  lose(kSecond);
  lose(kSecond);
  refuses = true;
  lose(kSecond);
  EXPECT_EQ(record(), std::nullopt);
  EXPECT_THAT(notes, IsEmpty());
  refuses = false;
  look(2 * kSecond);
  EXPECT_EQ(record(), (QuarantineRecord{1, 1}));
}

}  // namespace
}  // namespace everstep::elastic::test
