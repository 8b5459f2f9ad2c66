#include "tests/elastic/fake_kv_store.h"

#include "tests/elastic/kv_contract.h"

namespace everstep::elastic {
namespace {

class FakeSubject final : public Subject {
 public:
  KvStore& store() override { return store_; }
  void let_expire(LeaseId lease) override { store_.expire(lease); }
  void interrupt_and_compact() override {
    store_.interrupt_watches();
    store_.compact();
  }

 private:
  FakeKvStore store_;
};

INSTANTIATE_TEST_SUITE_P(Fake, KvContract,
                         testing::Values(SubjectMaker{"a fake", [] { return std::make_unique<FakeSubject>(); }}));

constexpr auto kDeadline = std::chrono::seconds(1);

bool has_key(FakeKvStore& store) { return !store.transact({{}, {get("/a")}}, kDeadline)->reads[0].empty(); }

TEST(FakeKvStore, FailsTheNextCallAsTold) {
  using Fault = FakeKvStore::Fault;
  FakeKvStore store;
  const Txn txn{{}, {put("/a", "1")}};
  store.fail_next(Fault::kNotExecuted);
  EXPECT_EQ(store.transact(txn, kDeadline).error().code, ErrorCode::kUnavailable);
  store.fail_next(Fault::kUnknownAndNotExecuted);
  EXPECT_EQ(store.transact(txn, kDeadline).error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(has_key(store));
  store.fail_next(Fault::kExecutedButUnknown);
  EXPECT_EQ(store.transact(txn, kDeadline).error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(has_key(store));
}

}  // namespace
}  // namespace everstep::elastic
