#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/kv_store.h"
#include "tests/elastic/heard.h"

namespace everstep::elastic {

// What every KvStore does. An implementation derives from Subject, and instantiates the suite with a maker of it.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual KvStore& store() = 0;
  // Returns when the lease, which has a short time to live, is over without having been renewed.
  virtual void let_expire(LeaseId lease) = 0;
  // The store goes away and comes back; events that watches have not heard by then may be forgotten.
  virtual void interrupt_and_compact() = 0;
};

struct SubjectMaker {
  const char* name;
  std::function<std::unique_ptr<Subject>()> make;

  friend void PrintTo(const SubjectMaker& maker, std::ostream* out) { *out << maker.name; }
};

class KvContract : public testing::TestWithParam<SubjectMaker> {
 protected:
  static constexpr auto kLong = std::chrono::seconds(20);

  TxnReply done(const Txn& txn) {
    auto reply = store().transact(txn, kLong);
    EXPECT_TRUE(reply.ok()) << reply.error();
    return reply.ok() ? *reply : TxnReply{};
  }
  // The items below "/", without their revisions.
  std::vector<std::string> content() {
    std::vector<std::string> lines;
    const TxnReply reply = done({{}, {list("/")}});
    for (const KeyValue& item : reply.reads.at(0)) lines.push_back(item.key + "=" + item.value);
    return lines;
  }
  ErrorCode refusal(const Txn& txn) {
    const auto reply = store().transact(txn, kLong);
    EXPECT_FALSE(reply.ok());
    return reply.ok() ? ErrorCode::kInternal : reply.error().code;
  }
  LeaseId granted(std::chrono::seconds ttl = std::chrono::seconds(60)) {
    const auto lease = store().grant(ttl, kLong);
    EXPECT_TRUE(lease.ok()) << lease.error();
    return lease.ok() ? *lease : 0;
  }
  KvStore& store() { return subject_->store(); }
  Subject& subject() { return *subject_; }

 private:
  std::unique_ptr<Subject> subject_ = GetParam().make();
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KvContract);

using Lines = std::vector<std::string>;

TEST_P(KvContract, OneBranchOfATransactionHappens) {
  EXPECT_TRUE(done({{is_absent("/a")}, {put("/a", "1")}, {put("/b", "2")}}).succeeded);
  EXPECT_FALSE(done({{is_absent("/a")}, {put("/c", "1")}, {put("/b", "2")}}).succeeded);
  EXPECT_EQ(content(), (Lines{"/a=1", "/b=2"}));
}

TEST_P(KvContract, OneCompareThatFailsIsEnough) {
  done({{}, {put("/a", "1")}});
  EXPECT_FALSE(done({{is_absent("/b"), has_value("/a", "2"), is_absent("/c")}, {put("/b", "1")}}).succeeded);
  EXPECT_EQ(content(), Lines{"/a=1"});
}

TEST_P(KvContract, RevisionsTellWhenAKeyWasCreatedAndModified) {
  const Revision first = done({{}, {put("/a", "1")}}).revision;
  const Revision second = done({{}, {put("/a", "2"), put("/b", "1")}}).revision;
  EXPECT_EQ(second, first + 1);
  const TxnReply reply = done({{}, {get("/a"), get("/b"), get("/c")}});
  EXPECT_EQ(reply.revision, second);
  EXPECT_EQ(reply.reads, (std::vector<std::vector<KeyValue>>{
                             {{"/a", "2", first, second, 0}}, {{"/b", "1", second, second, 0}}, {}}));
}

TEST_P(KvContract, ComparesLookAtTheirField) {
  const Revision created = done({{}, {put("/a", "1")}}).revision;
  const Revision modified = done({{}, {put("/a", "2")}}).revision;
  const auto holds = [&](const Compare& compare) { return done({{compare}, {}}).succeeded; };
  EXPECT_TRUE(holds(created_at("/a", created)));
  EXPECT_FALSE(holds(created_at("/a", modified)));
  EXPECT_TRUE(holds(modified_at("/a", modified)));
  EXPECT_FALSE(holds(modified_at("/a", created)));
  EXPECT_TRUE(holds(has_value("/a", "2")));
  EXPECT_FALSE(holds(has_value("/a", "1")));
  EXPECT_FALSE(holds(is_absent("/a")));
  EXPECT_TRUE(holds(is_absent("/b")));
  EXPECT_TRUE(holds(modified_at("/b", 0)));
  EXPECT_FALSE(holds(has_value("/b", ""))) << "a key that is not there has no value, not even an empty one";
}

TEST_P(KvContract, AKeyThatIsPutAgainAfterItsDeletionIsNew) {
  const Revision first = done({{}, {put("/a", "1")}}).revision;
  const Revision gone = done({{}, {remove("/a")}}).revision;
  const Revision second = done({{}, {put("/a", "1")}}).revision;
  EXPECT_EQ(gone, first + 1);
  EXPECT_FALSE(done({{created_at("/a", first)}, {}}).succeeded);
  EXPECT_TRUE(done({{created_at("/a", second)}, {}}).succeeded);
}

TEST_P(KvContract, WhatChangesNothingHasNoRevision) {
  const Revision before = done({{}, {put("/a", "1")}}).revision;
  EXPECT_EQ(done({{}, {remove("/b"), remove_prefix("/x/"), get("/a")}}).revision, before);
  EXPECT_EQ(done({{}, {}}).revision, before);
}

TEST_P(KvContract, PrefixesAreListedAndDeletedInTheOrderOfKeys) {
  done(
      {{}, {put("/p/b", "2"), put("/p/a", "1"), put("/p", "0"), put("/q", "9"), put("/p/\xff", "3"), put("/p0", "8")}});
  const TxnReply reply = done({{}, {list("/p/"), remove_prefix("/p/"), list("/p/")}});
  ASSERT_EQ(reply.reads.size(), 3U);
  ASSERT_EQ(reply.reads[0].size(), 3U);
  EXPECT_EQ(reply.reads[0][0].key, "/p/a");
  EXPECT_EQ(reply.reads[0][1].key, "/p/b");
  EXPECT_EQ(reply.reads[0][2].key, "/p/\xff");
  EXPECT_TRUE(reply.reads[1].empty());
  EXPECT_TRUE(reply.reads[2].empty()) << "later operations see earlier ones";
  EXPECT_EQ(content(), (Lines{"/p=0", "/p0=8", "/q=9"}));
}

TEST_P(KvContract, ReadsSeeWhatTheirTransactionHasPutBeforeThem) {
  done({{}, {put("/b", "old")}});
  const TxnReply reply =
      done({{}, {get("/a"), list("/"), put("/a", "1"), put("/b", "new"), list("/"), get("/c"), get("/b")}});
  std::vector<Lines> lines;
  for (const auto& items : reply.reads) {
    lines.emplace_back();
    for (const KeyValue& item : items) lines.back().push_back(item.key + "=" + item.value);
  }
  EXPECT_EQ(lines, (std::vector<Lines>{{}, {"/b=old"}, {}, {}, {"/a=1", "/b=new"}, {}, {"/b=new"}}));
}

TEST_P(KvContract, TheEmptyPrefixIsEverything) {
  done({{}, {put("a", "1"), put("\xff\xff", "2"), put(std::string(1, '\0'), "3")}});
  EXPECT_EQ(done({{}, {list("")}}).reads.at(0).size(), 3U);
  done({{}, {remove_prefix("\xff")}});
  EXPECT_EQ(done({{}, {list("")}}).reads.at(0).size(), 2U);
}

TEST_P(KvContract, ValuesHoldAnyBytes) {
  const std::string value("\0\xff\n", 3);
  done({{}, {put("/a", value)}});
  EXPECT_TRUE(done({{has_value("/a", value)}, {}}).succeeded);
  EXPECT_EQ(done({{}, {get("/a")}}).reads.at(0).at(0).value, value);
}

TEST_P(KvContract, TransactionsThatMakeNoSenseAreRefusedAndNotExecuted) {
  EXPECT_EQ(refusal({{}, {put("/a", "1"), put("/a", "2")}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({{}, {put("/a", "1"), remove_prefix("/")}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({{}, {put("", "1")}}), ErrorCode::kInvalidArgument);
  Txn large;
  for (std::size_t at = 0; at <= kMostOps; ++at) large.then.push_back(put("/" + std::to_string(at), "1"));
  EXPECT_EQ(refusal(large), ErrorCode::kInvalidArgument);
  large.then.pop_back();
  EXPECT_TRUE(content().empty());
  EXPECT_TRUE(done(large).succeeded);
  EXPECT_EQ(content().size(), kMostOps);
}

TEST_P(KvContract, KeysGoWithTheirLeaseAtOneInstant) {
  const LeaseId lease = granted();
  done({{}, {put("/a", "1", lease), put("/b", "2", lease), put("/c", "3")}});
  EXPECT_EQ(done({{}, {get("/a")}}).reads.at(0).at(0).lease, lease);
  done({{}, {put("/b", "4")}});  // without the lease
  ASSERT_TRUE(store().revoke(lease, kLong).ok());
  EXPECT_EQ(content(), (Lines{"/b=4", "/c=3"}));
}

TEST_P(KvContract, ALeaseThatIsNotRenewedEndsWithItsKeys) {
  const LeaseId lease = granted(std::chrono::seconds(2));
  done({{}, {put("/a", "1", lease)}});
  subject().let_expire(lease);
  EXPECT_TRUE(content().empty());
  EXPECT_EQ(store().renew(lease, kLong).error().code, ErrorCode::kNotFound);
}

TEST_P(KvContract, RenewingTellsTheTimeThatIsLeft) {
  const auto left = store().renew(granted(std::chrono::seconds(60)), kLong);
  ASSERT_TRUE(left.ok()) << left.error();
  EXPECT_EQ(*left, std::chrono::seconds(60));
}

TEST_P(KvContract, ALeaseThatIsGoneIsNotFound) {
  const LeaseId lease = granted();
  ASSERT_TRUE(store().revoke(lease, kLong).ok());
  EXPECT_EQ(store().renew(lease, kLong).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store().revoke(lease, kLong).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(refusal({{}, {put("/b", "1"), put("/a", "1", lease)}}), ErrorCode::kNotFound);
  EXPECT_TRUE(content().empty()) << "nothing of the transaction happened";
}

TEST_P(KvContract, LeasesDiffer) { EXPECT_NE(granted(), granted()); }

TEST_P(KvContract, AWatchTellsChangesBelowItsPrefixInOrder) {
  done({{}, {put("/w/old", "0")}});
  Heard heard;
  const auto watch = store().watch("/w/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  EXPECT_TRUE(heard.is_gap_first);
  const LeaseId lease = granted();
  const Revision first = done({{}, {put("/w/a", "1", lease), put("/v", "1"), put("/w/b", "2")}}).revision;
  const Revision second = done({{}, {put("/w/b", "3")}}).revision;
  ASSERT_TRUE(store().revoke(lease, kLong).ok());
  ASSERT_TRUE(heard.waits_for_events(4));
  const std::vector<WatchEvent>& events = heard.events;
  EXPECT_EQ(events[0].item, (KeyValue{"/w/a", "1", first, first, lease}));
  EXPECT_EQ(events[1].item, (KeyValue{"/w/b", "2", first, first, 0}));
  EXPECT_EQ(events[2].item, (KeyValue{"/w/b", "3", first, second, 0}));
  EXPECT_TRUE(events[3].deleted);
  EXPECT_EQ(events[3].item.key, "/w/a");
  EXPECT_EQ(events[3].item.modified, second + 1);
}

TEST_P(KvContract, NothingIsMissedByThoseWhoListAfterAGap) {
  Heard heard;
  const auto watch = store().watch("/w/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  done({{}, {put("/w/a", "1")}});
  const int gaps_before = heard.gaps_now();
  subject().interrupt_and_compact();
  ASSERT_TRUE(heard.waits_for_gaps(gaps_before + 1));
  done({{}, {put("/w/b", "2")}});
  EXPECT_TRUE(heard.waits_for([](const Heard& it) {
    return std::any_of(it.events.begin(), it.events.end(), [](const auto& event) { return event.item.key == "/w/b"; });
  }));
}

TEST_P(KvContract, AWatchThatIsGoneIsNotToldAnything) {
  Heard heard;
  auto watch = store().watch("/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  watch.reset();
  Heard other;
  const auto second = store().watch("/", other.sink());
  ASSERT_TRUE(other.waits_for_gaps(1));
  done({{}, {put("/a", "1")}});
  ASSERT_TRUE(other.waits_for_events(1));
  EXPECT_TRUE(heard.events.empty());
}

}  // namespace everstep::elastic
