// Numbers that are not finite: of bad data, and of a worker that computes wrongly once.
#include "storage/json/json_reader.h"
#include "tests/launcher/supervise/elastic_job.h"

namespace everstep::launcher {
namespace {

constexpr int kLast = 30 * 8 + 7;  // position of the last minibatch of window 30

struct Kind {
  const char* schedule;
  const char* shapes;
  int workers_left;  // of four, after one is gone
};

class ElasticAnomaly : public ElasticJob, public testing::WithParamInterface<Kind> {
 protected:
  // So few checkpoints that going back to one would show.
  void start_with(const std::string& where) {
    environment = {"TEST_NAN_AT=" + where};
    start({"--workers=4", "--checkpoint-every=10000", "--schedule=" + std::string(GetParam().schedule),
           "--shapes=" + std::string(GetParam().shapes)});
  }

  void expect_audit(const std::vector<std::int64_t>& left_out, int skipped) const {
    const auto json = storage::parse_json(run_program({"audit", path("saves"), "--json"}).out);
    ASSERT_TRUE(json);
    const storage::JsonReader audit(*json);
    std::vector<std::int64_t> found;
    const auto elements = audit.elements_at("left_out");
    for (const storage::JsonReader& one : elements ? *elements : std::vector<storage::JsonReader>()) {
      found.push_back(std::get<std::int64_t>(one.json().value()));
    }
    EXPECT_EQ(found, left_out);
    EXPECT_EQ(*audit.integer_at("skipped_updates"), skipped);
  }

  void expect_all_proofs() {
    expect_stop();
    expect_proofs();
  }
};

TEST_P(ElasticAnomaly, OfAMinibatchThatAlwaysHasItLeavesThatMinibatchOut) {
  start_with(std::to_string(kLast) + ":3:forward");
  ASSERT_TRUE(says("minibatch " + std::to_string(kLast) + ") again: it is left out"));
  ASSERT_TRUE(says("event=window_tried_again window=30 outcome=applied"));
  EXPECT_TRUE(goes_on());
  for (const GenerationLine& one : generations()) EXPECT_EQ(one.workers, 4) << "nobody is to blame";
  EXPECT_EQ(generations().back().origin, "copies");
  expect_all_proofs();
  expect_audit({kLast}, 0);
}

TEST_P(ElasticAnomaly, OfAWorkerThatHasItOnceShutsThatWorkerOut) {
  start_with(std::to_string(kLast) + ":3:backward:" + path("spoilt"));
  ASSERT_TRUE(says("fate=evicted"));
  ASSERT_TRUE(trains_with(GetParam().workers_left, 2));
  EXPECT_TRUE(goes_on());
  const Ended status = run_program({"status", dir()});
  EXPECT_NE(status.out.find("shut out"), std::string::npos) << status.out;
  expect_all_proofs();
  expect_audit({}, 0);
}

INSTANTIATE_TEST_SUITE_P(Schedules, ElasticAnomaly,
                         testing::Values(Kind{"clockwork", "4=4x1,3=3x1", 3}, Kind{"1f1b", "4=4x1,3=3x1", 3}),
                         [](const auto& test) { return std::string(test.param.schedule); });

}  // namespace
}  // namespace everstep::launcher
