#include "elastic/high_water.h"

#include <gtest/gtest.h>

#include "elastic/records.h"
#include "elastic/sim/kv_model.h"
#include "tests/elastic/brain/small_cluster.h"

namespace everstep::elastic::test {
namespace {

class HighWaterTest : public testing::Test {
 protected:
  std::string generation(std::int64_t number) const {
    GenerationRecord record;
    record.roster.attempt = {{number}, 7};
    record.roster.plan = *wide_plan({{worker(1), "host"}}, nullptr);
    return to_text(record);
  }
  std::string head(std::int64_t sequence) const {
    return to_text(HeadRecord{sequence, {1}, {8 * sequence}, std::string(64, 'c'), ""});
  }

  void write(const KvOp& op) { ASSERT_TRUE(store.apply({{}, {op}}).ok()); }
  // By events, or by a list.
  Status hear() {
    view.apply(*store.events_after(view.revision(), keys.live()));
    return newest.look(view, keys);
  }
  Status list() {
    view.replace(store.apply({{}, {elastic::list(keys.live())}})->reads[0], store.revision());
    return newest.look(view, keys);
  }

  Keys keys{"job"};
  KvModel store;
  View view;
  HighWater newest;
};

TEST_F(HighWaterTest, LetsGenerationAndHeadGrow) {
  for (const int number : {1, 2, 5}) {
    write(put(keys.generation(), generation(number)));
    write(put(keys.head(), head(number)));
    EXPECT_TRUE(hear().ok());
    EXPECT_TRUE(list().ok());
  }
}

TEST_F(HighWaterTest, TellsAnOldOneThatIsPlayedAgain) {
  for (const auto& [key, old_value, new_value] :
       {std::tuple(keys.generation(), generation(1), generation(2)), std::tuple(keys.head(), head(1), head(2))}) {
    write(put(key, old_value));
    EXPECT_TRUE(hear().ok());
    write(put(key, new_value));
    EXPECT_TRUE(hear().ok());
    write(put(key, old_value));
    const Status status = hear();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kDataLoss);
    EXPECT_NE(status.error().message.find("went back from 2 to 1"), std::string::npos) << status.error();
    write(put(key, new_value));
    EXPECT_FALSE(hear().ok()) << "the same again was not written by a worker either";
    newest = {};
    write(remove(key));
    EXPECT_TRUE(hear().ok());
  }
}

TEST_F(HighWaterTest, TellsADeletionByEventsAndByAList) {
  for (const bool by_list : {false, true}) {
    newest = {};
    write(put(keys.generation(), generation(by_list ? 2 : 1)));
    EXPECT_TRUE(hear().ok());
    write(remove(keys.generation()));
    const Status status = by_list ? list() : hear();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("was deleted"), std::string::npos) << status.error();
  }
}

// Another view of the same process begins with a read that is old, or has missed an event.
TEST_F(HighWaterTest, IsNotMisledByAViewThatIsBehind) {
  write(put(keys.generation(), generation(1)));
  const std::vector<KeyValue> early = store.apply({{}, {elastic::list(keys.live())}})->reads[0];
  const Revision then = store.revision();
  write(put(keys.generation(), generation(2)));
  EXPECT_TRUE(hear().ok());
  View behind;
  EXPECT_TRUE(newest.look(behind, keys).ok());
  behind.replace(early, then);
  EXPECT_TRUE(newest.look(behind, keys).ok());
  behind.replace({}, then - 1);
  EXPECT_TRUE(newest.look(behind, keys).ok());
}

TEST_F(HighWaterTest, SaysNothingAboutWhatIsForged) {
  write(put(keys.generation(), generation(3)));
  EXPECT_TRUE(hear().ok());
  view.replace({}, store.revision() + 1, {{keys.generation(), "", 1, store.revision() + 1, 0}});
  EXPECT_TRUE(newest.look(view, keys).ok());
}

}  // namespace
}  // namespace everstep::elastic::test
