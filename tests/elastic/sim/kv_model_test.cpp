#include "elastic/sim/kv_model.h"

#include <gtest/gtest.h>

namespace everstep::elastic {
namespace {

TEST(KvModel, KeepsTheHistoryUntilItIsCompacted) {
  KvModel model;
  const Revision start = model.revision();
  ASSERT_TRUE(model.apply({{}, {put("/a", "1"), put("/b", "2")}}).ok());
  ASSERT_TRUE(model.apply({{}, {remove("/a")}}).ok());
  EXPECT_EQ(model.events_after(start, "/")->size(), 3U);
  EXPECT_EQ(model.events_after(start, "/a")->size(), 2U);
  EXPECT_EQ(model.events_after(start + 1, "/")->size(), 1U);
  EXPECT_TRUE(model.events_after(model.revision(), "/")->empty());

  model.compact(start + 1);
  EXPECT_FALSE(model.events_after(start, "/").has_value());
  EXPECT_EQ(model.events_after(start + 1, "/")->size(), 1U);
}

TEST(KvModel, RevisionsGoOnAfterACompaction) {
  KvModel model;
  ASSERT_TRUE(model.apply({{}, {put("/a", "1")}}).ok());
  const Revision before = model.revision();
  model.compact(before);
  EXPECT_EQ(model.apply({{}, {get("/a")}})->revision, before);
  EXPECT_EQ(model.apply({{}, {put("/a", "2")}})->revision, before + 1);
}

TEST(KvModel, ACopyIsASnapshot) {
  KvModel model;
  const LeaseId lease = model.grant();
  ASSERT_TRUE(model.apply({{}, {put("/a", "1", lease)}}).ok());
  KvModel copy = model;
  ASSERT_TRUE(copy.expire(lease).ok());
  EXPECT_TRUE(model.has_lease(lease));
  EXPECT_TRUE(copy.apply({{}, {get("/a")}})->reads[0].empty());
  EXPECT_EQ(model.apply({{}, {get("/a")}})->reads[0].size(), 1U);
}

}  // namespace
}  // namespace everstep::elastic
