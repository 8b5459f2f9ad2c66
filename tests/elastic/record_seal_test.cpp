#include "elastic/record_seal.h"

#include <gmock/gmock.h>

#include "elastic/sealed_store.h"
#include "elastic/sim/disk.h"
#include "elastic/view.h"
#include "tests/elastic/fake_kv_store.h"

namespace everstep::elastic::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::chrono::milliseconds kDeadline{1000};

// As good as a MAC where nobody looks for collisions.
RecordSeal::Mac mac_with(const std::string& secret) {
  return [secret](std::string_view text) {
    const std::string digest = sim::digest_of(secret + std::string(text));
    std::string digits;
    while (digits.size() < 64) digits += digest;
    return digits.substr(0, 64);
  };
}

class Sealed : public testing::Test {
 protected:
  std::string raw(const std::string& key) {
    const auto found = plain.transact({{}, {get(key)}}, kDeadline)->reads[0];
    return found.empty() ? "nothing" : found.front().value;
  }
  void stranger_puts(const std::string& key, const std::string& value) {
    ASSERT_TRUE(plain.transact({{}, {put(key, value)}}, kDeadline).ok());
  }
  TxnReply read(const std::string& key) { return *store.transact({{}, {get(key)}}, kDeadline); }

  Keys keys{"job"};
  RecordSeal seal{keys, mac_with("secret")};
  FakeKvStore plain;
  SealedStore store{std::make_unique<FakeKvStore>(plain), seal};
};

TEST_F(Sealed, ValuesLookAlikeToPeopleAndComeBackAsTheyWere) {
  for (const std::string value : {"", "a", "line\n", "two\n\nlines", "seal of something\n"}) {
    const std::string text = seal.seal(keys.drain(), value);
    EXPECT_TRUE(text.starts_with(value + "\nseal ")) << text;
    EXPECT_EQ(seal.open(keys.drain(), text), value);
  }
}

TEST_F(Sealed, ValuesAreRefusedUnderAnotherKeyOfAnotherJobAndWithAnythingChanged) {
  const std::string text = seal.seal(keys.drain(), "stop\n");
  EXPECT_FALSE(seal.open(keys.proposal(), text));
  EXPECT_FALSE(RecordSeal(keys, mac_with("another")).open(keys.drain(), text)) << "another secret, lineage or spec";
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 1;
    EXPECT_FALSE(seal.open(keys.drain(), changed)) << changed;
    EXPECT_FALSE(seal.open(keys.drain(), text.substr(0, at)));
  }
  EXPECT_FALSE(seal.open(keys.drain(), text + "\n"));
}

// "ab" + "c" and "a" + "bc" are two things.
TEST_F(Sealed, ValuesDoNotChangePlacesWithTheirKeys) {
  const std::string text = seal.seal(keys.drain() + "x", "y");
  EXPECT_FALSE(seal.open(keys.drain(), "x" + text));
}

TEST_F(Sealed, JobsWithoutASecretHaveNoSeals) {
  const RecordSeal none;
  EXPECT_EQ(none.seal(keys.drain(), "stop\n"), "stop\n");
  EXPECT_EQ(none.open(keys.drain(), "stop\n"), "stop\n");
}

TEST_F(Sealed, RecordsCanBeReadByPeopleWithoutTheSecret) {
  const RecordSeal curious = RecordSeal::unchecked(keys);
  EXPECT_EQ(curious.open(keys.drain(), seal.seal(keys.drain(), "stop\n")), "stop\n");
  EXPECT_FALSE(curious.open(keys.drain(), "stop\n"));
}

TEST_F(Sealed, StoresSealWhatTheyWriteAndCompareAndLeaveTheSpecAlone) {
  const Txn write{{}, {put(keys.spec(), "spec"), put(keys.leader(), "me"), put("/elsewhere", "plain")}};
  ASSERT_TRUE(store.transact(write, kDeadline)->succeeded);
  EXPECT_EQ(raw(keys.spec()), "spec");
  EXPECT_EQ(raw("/elsewhere"), "plain");
  EXPECT_EQ(raw(keys.leader()), seal.seal(keys.leader(), "me"));
  EXPECT_EQ(read(keys.leader()).reads[0].front().value, "me");
  EXPECT_TRUE(store.transact({{has_value(keys.leader(), "me")}, {}}, kDeadline)->succeeded);
  EXPECT_FALSE(store.transact({{has_value(keys.leader(), "you")}, {}}, kDeadline)->succeeded);
}

TEST_F(Sealed, StoresSetAsideWhatIsForged) {
  stranger_puts(keys.leader(), "me");
  ASSERT_TRUE(store.transact({{}, {put(keys.drain(), "stop")}}, kDeadline)->succeeded);
  stranger_puts(keys.proposal(), raw(keys.drain()));
  const TxnReply reply = *store.transact({{}, {list(keys.live())}}, kDeadline);
  ASSERT_THAT(reply.reads[0], SizeIs(1));
  EXPECT_EQ(reply.reads[0].front().key, keys.drain());
  ASSERT_THAT(reply.forged, SizeIs(2));
  for (const KeyValue& item : reply.forged) {
    EXPECT_EQ(item.value, "");
    EXPECT_GT(item.modified, 0);
  }
}

TEST_F(Sealed, WatchesTellOfForgeries) {
  std::mutex mutex;
  std::vector<WatchEvent> heard;
  const auto watch = store.watch(keys.live(), {[&](const std::vector<WatchEvent>& events) {
                                                 const std::scoped_lock lock(mutex);
                                                 heard.insert(heard.end(), events.begin(), events.end());
                                               },
                                               [] {}});
  const auto size = [&] {
    const std::scoped_lock lock(mutex);
    return heard.size();
  };
  const auto hears = [&](std::size_t count) {
    for (int tries = 0; size() < count && tries < 1000; ++tries) std::this_thread::sleep_for(kDeadline / 100);
    return size() >= count;
  };
  // The first events may come before the watch begins.
  for (std::size_t tries = 0; size() == 0 && tries < 100; ++tries) {
    stranger_puts(keys.leader(), "garbage");
    (void)hears(1);
  }
  const std::size_t before = size();
  ASSERT_TRUE(store.transact({{}, {put(keys.leader(), "me")}}, kDeadline)->succeeded);
  ASSERT_TRUE(hears(before + 1));
  const std::scoped_lock lock(mutex);
  EXPECT_TRUE(heard.front().forged);
  EXPECT_EQ(heard.front().item.value, "");
  EXPECT_FALSE(heard.back().forged);
  EXPECT_EQ(heard.back().item.value, "me");
}

// ---- what a view makes of it ----

TEST(ForgedRecords, AreNotFoundButKnown) {
  View view;
  view.replace({{"a", "1", 1, 1, 0}}, 5, {{"b", "", 2, 3, 0}});
  EXPECT_EQ(view.find("b"), nullptr);
  EXPECT_THAT(view.below("b"), IsEmpty());
  EXPECT_TRUE(view.is_forged("b"));
  EXPECT_EQ(view.modified("b"), 3);
  EXPECT_EQ(view.created("b"), 2);
  EXPECT_FALSE(view.is_gone_since("b", 4));
  // Something better takes its place, and the other way round.
  EXPECT_TRUE(view.apply({{false, {"b", "2", 2, 6, 0}}, {false, {"a", "", 1, 7, 0}, true}}));
  EXPECT_EQ(view.find("b")->value, "2");
  EXPECT_EQ(view.find("a"), nullptr);
  ASSERT_THAT(view.forged(), SizeIs(1));
  EXPECT_EQ(view.forged().front()->key, "a");
  EXPECT_TRUE(view.apply({{true, {"a", "", 0, 8, 0}}}));
  EXPECT_THAT(view.forged(), IsEmpty());
  EXPECT_TRUE(view.is_gone_since("a", 7));
  EXPECT_FALSE(view.apply({{false, {"a", "1", 1, 6, 0}}})) << "older than the deletion";
}

}  // namespace
}  // namespace everstep::elastic::test
