// Watches that lose events, tell them twice or late.
#include "launcher/worker/view_keeper.h"

#include <gtest/gtest.h>

#include "tests/elastic/fake_kv_store.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using elastic::WatchEvent;

// Its watch tells what the test says, and nothing else.
class HalfDeafStore final : public elastic::KvStore {
 public:
  Result<elastic::TxnReply> transact(const elastic::Txn& txn, std::chrono::milliseconds deadline) override {
    return store_.transact(txn, deadline);
  }
  Result<elastic::LeaseId> grant(std::chrono::seconds ttl, std::chrono::milliseconds deadline) override {
    return store_.grant(ttl, deadline);
  }
  Result<std::chrono::seconds> renew(elastic::LeaseId lease, std::chrono::milliseconds deadline) override {
    return store_.renew(lease, deadline);
  }
  Status revoke(elastic::LeaseId lease, std::chrono::milliseconds deadline) override {
    return store_.revoke(lease, deadline);
  }
  std::unique_ptr<elastic::Watch> watch(std::string /*prefix*/, elastic::WatchSink sink) override {
    sink_ = std::move(sink);
    return nullptr;
  }

  void tell(const std::vector<WatchEvent>& events) const { sink_.on_events(events); }
  std::vector<WatchEvent> events_after(elastic::Revision revision) const {
    return store_.model().events_after(revision, "").value();
  }

 private:
  elastic::FakeKvStore store_;
  elastic::WatchSink sink_;
};

class ViewKeeping : public testing::Test {
 protected:
  ViewKeeping() { EXPECT_TRUE(keeper.refresh(kStart)); }

  // What the watch ought to have told.
  std::vector<WatchEvent> change(elastic::KvOp op) {
    const elastic::Revision before = keeper.view().revision();
    EXPECT_TRUE(store.transact({{}, {std::move(op)}}, 1s));
    return store.events_after(before);
  }
  std::string value() const {
    const elastic::KeyValue* found = keeper.view().find("key");
    return found == nullptr ? "" : found->value;
  }

  static constexpr Tick kStart = 100 * kTicksPerSecond;

  HalfDeafStore store;
  ViewKeeper keeper{store, "", [] {}};
};

TEST_F(ViewKeeping, FindsWhatNoEventToldOfWithinTenSeconds) {
  change(elastic::put("key", "value"));
  EXPECT_FALSE(*keeper.refresh(kStart + 9 * kTicksPerSecond));
  EXPECT_EQ(value(), "");
  EXPECT_TRUE(*keeper.refresh(kStart + 10 * kTicksPerSecond));
  EXPECT_EQ(value(), "value");
}

TEST_F(ViewKeeping, IsNotMisledByEventsThatAreDoubledOrOld) {
  const std::vector<WatchEvent> first = change(elastic::put("key", "first"));
  store.tell(first);
  EXPECT_TRUE(*keeper.refresh(kStart));
  store.tell(change(elastic::put("key", "second")));
  store.tell(first);
  EXPECT_TRUE(*keeper.refresh(kStart));
  EXPECT_EQ(value(), "second");
  store.tell(first);
  EXPECT_FALSE(*keeper.refresh(kStart));
}

}  // namespace
}  // namespace everstep::launcher
