// A worker that is slower than the others: told, planned around if asked, never evicted.
#include <algorithm>

#include <gmock/gmock.h>

#include "storage/json/json.h"
#include "tests/launcher/supervise/elastic_job.h"

namespace everstep::launcher {
namespace {

using storage::Json;

// Of one pipeline, so that the cuts alone make up for it.
class ElasticStraggler : public ElasticJob {
 protected:
  // Three workers, and a fourth that takes eight times as long as it has to.
  void start_with_a_slow_one(const std::string& rebalance) {
    // Large enough to be what the planner takes it for. Where a spare's speed is believed for twenty intervals, a short
    // interval would let it be tried again and again.
    ASSERT_TRUE(starts(3, {"--workers=3", "--schedule=1f1b", "--shapes=3=3x1,4=4x1", "--hidden=64", "--sequence=64",
                           "--minibatch=4", "--join-interval=3", rebalance}));
    add_worker("slow", {"--slowdown=8"});
    ASSERT_TRUE(trains_with(4));
    ASSERT_TRUE(becomes("a straggler", [&] { return straggler().starts_with("slow is "); })) << straggler();
  }

  Json status() const {
    auto json = storage::parse_json(run_program({"status", dir(), "--json"}).out);
    return json ? *std::move(json) : Json();
  }
  std::string straggler() const {
    const Json now = status();
    const Json* found = now.find("straggler");
    return found != nullptr && *found != Json(nullptr) ? std::get<std::string>(found->value()) : "";
  }
  // Nothing: it is no member, or none is known.
  std::optional<Json> slow_one() const {
    const Json now = status();
    if (now.find("workers") == nullptr) return std::nullopt;
    for (const Json& worker : std::get<Json::Array>(now.find("workers")->value())) {
      if (*worker.find("name") == Json("slow")) return worker;
    }
    return std::nullopt;
  }
};

TEST_F(ElasticStraggler, IsPlannedAroundIfAskedAndStays) {
  start_with_a_slow_one("--rebalance=on");
  const auto is_rebalanced = [&] { return generations().back().reason.find("slow is ") != std::string::npos; };
  ASSERT_TRUE(becomes("a plan for a slow worker", is_rebalanced)) << generations().back().reason;
  EXPECT_EQ(generations().back().origin, "memory");
  EXPECT_EQ(generations().back().redone, 0);
  ASSERT_TRUE(goes_on());
  const auto slow = slow_one();
  ASSERT_TRUE(slow);
  EXPECT_EQ(*slow->find("state"), Json("training")) << "with four there is one shape, which needs it";
  EXPECT_EQ(std::get<Json::Array>(slow->find("stages")->value()).size(), 1U);
  expect_stop();
  expect_proofs();
  // The last stretches are before and after: eight blocks, and other cuts.
  const std::vector<Stretch> all = stretches();
  const auto with_four = [](const Stretch& one) { return one.plan.find(" D=4 ") != std::string::npos; };
  const auto first = std::find_if(all.begin(), all.end(), with_four);
  ASSERT_NE(first, all.end());
  EXPECT_NE(first->plan, all.back().plan);
}

TEST_F(ElasticStraggler, IsOnlyToldOfUnlessAsked) {
  start_with_a_slow_one("--rebalance=off");
  const int before = generation();
  ASSERT_TRUE(goes_on(40));
  EXPECT_EQ(generation(), before);
  ASSERT_TRUE(slow_one());
  expect_stop();
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
