#include "launcher/status/job_control.h"

#include <thread>

#include <gtest/gtest.h>

#include "launcher/status/job_address.h"
#include "launcher/supervise/job_requests.h"
#include "tests/elastic/fake_kv_store.h"
#include "tests/launcher/status/hand_written_job.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using elastic::FakeKvStore;

class JobControl : public testing::Test {
 protected:
  elastic::View view() {
    auto seen = look_at_job(store, job.keys(), "first");
    EXPECT_TRUE(seen) << seen.error();
    return *std::move(seen);
  }
  Result<elastic::MemberRecord> choose(const std::string& wanted) { return choose_member(view(), job.keys(), wanted); }
  std::string value(const std::string& key) {
    const elastic::View now = view();
    const elastic::KeyValue* item = now.find(key);
    return item == nullptr ? "nothing" : item->value;
  }

  elastic::RequestRecord request(const std::string& key) {
    const auto record = elastic::parse_request(value(key));
    EXPECT_TRUE(record) << record.error();
    return record ? *record : elastic::RequestRecord{};
  }

  FakeKvStore store;
  HandWrittenJob job{store, "first"};
};

TEST_F(JobControl, FindsAWorkerByNameOrById) {
  job.train();
  EXPECT_EQ(choose("w2")->id, numbered(2));
  EXPECT_EQ(choose("abcd0001")->id, numbered(1));
  EXPECT_EQ(choose(to_string(numbered(2)))->id, numbered(2));
}

TEST_F(JobControl, SaysWhoThereIs) {
  job.train();
  const auto nobody = choose("w7");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error(), not_found("no worker is called 'w7'", "there is w1 (abcd0001), w2 (abcd0002)"));
  EXPECT_FALSE(choose("abc")) << "too short to be meant as an id";
  EXPECT_FALSE(choose(""));
}

TEST_F(JobControl, TakesNoNameThatTwoHave) {
  job.train();
  job.add_worker(3, elastic::MemberState::kReady, "w2");
  const auto both = choose("w2");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(both.error().message, "'w2' may be w2 (abcd0002), w2 (abcd0003)");
  EXPECT_FALSE(choose("abcd"));
  EXPECT_EQ(choose("abcd0003")->id, numbered(3));
}

TEST_F(JobControl, PrefersANameToAnId) {
  job.train();
  job.add_worker(3, elastic::MemberState::kReady, "abcd0001");
  EXPECT_EQ(choose("abcd0001")->id, numbered(3));
}

TEST_F(JobControl, AsksAWorkerToLeave) {
  job.train();
  EXPECT_TRUE(ask_to_leave(store, job.keys(), numbered(2), "everstep drain"));
  EXPECT_EQ(request(job.keys().drain_request(numbered(2))).reason, "everstep drain");
  const Status gone = ask_to_leave(store, job.keys(), numbered(9), "everstep drain");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(value(job.keys().drain_request(numbered(9))), "nothing");
}

TEST_F(JobControl, AsksAgainWhenTheStoreWasAway) {
  job.train();
  store.fail_next(FakeKvStore::Fault::kNotExecuted);
  store.fail_next(FakeKvStore::Fault::kExecutedButUnknown);
  EXPECT_TRUE(ask_to_stop(store, job.keys(), "everstep stop"));
  EXPECT_EQ(request(job.keys().stop_request()).reason, "everstep stop");
  EXPECT_EQ(request(job.keys().stop_request()).generation, Generation{3});
}

TEST_F(JobControl, IsHeardByTheSupervisorOnceForEachTime) {
  JobRequests supervisor(store, job.keys());
  EXPECT_TRUE(ask_for_workers(store, job.keys(), 3));
  EXPECT_EQ(supervisor.next_scale(), std::nullopt) << "asked before it was there";
  EXPECT_TRUE(ask_for_workers(store, job.keys(), 5));
  EXPECT_EQ(supervisor.next_scale(), 5);
  EXPECT_EQ(supervisor.next_scale(), std::nullopt);
  EXPECT_TRUE(ask_for_workers(store, job.keys(), 5));
  EXPECT_EQ(supervisor.next_scale(), 5);
}

// Whoever may write to the store may put a request back that was heeded long ago.
TEST_F(JobControl, IsNotHeardAgainWhenSomebodyPlaysAnOldRequest) {
  JobRequests supervisor(store, job.keys());
  EXPECT_EQ(supervisor.next_scale(), std::nullopt);
  EXPECT_TRUE(ask_for_workers(store, job.keys(), 5));
  const std::string old = value(job.keys().scale_request());
  EXPECT_EQ(supervisor.next_scale(), 5);
  EXPECT_TRUE(ask_for_workers(store, job.keys(), 2));
  EXPECT_EQ(supervisor.next_scale(), 2);
  job.write(job.keys().scale_request(), old);
  EXPECT_EQ(supervisor.next_scale(), std::nullopt);
  job.open(HandWrittenJob::pair(3));
  JobRequests later(store, job.keys());
  EXPECT_EQ(later.next_scale(), std::nullopt);
  job.remove(job.keys().scale_request());
  EXPECT_EQ(later.next_scale(), std::nullopt);
  job.write(job.keys().scale_request(), old);
  EXPECT_EQ(later.next_scale(), std::nullopt) << "made under an older generation than it has ever seen";
}

TEST_F(JobControl, RemovesAJobWithASecretOnlyForThoseWhoKnowIt) {
  const HandWrittenJob secret_job(store, "second", "a secret of the job");
  secret_job.forge(secret_job.keys().member(numbered(6)), "garbage");
  EXPECT_EQ(remove_job(store, "second", "", true).error().message, "job 'second' has a secret");
  EXPECT_FALSE(remove_job(store, "second", "another secret than that", true));
  const auto removed = remove_job(store, "second", "a secret of the job", false);
  ASSERT_TRUE(removed) << removed.error();
  EXPECT_EQ(removed->members, 0U) << "nobody lives who is forged";
}

TEST_F(JobControl, WaitsUntilItIsSo) {
  job.train();
  const auto is_gone = [&](const elastic::View& now) { return now.find(job.keys().member(numbered(2))) == nullptr; };
  std::jthread worker([&] {
    std::this_thread::sleep_for(300ms);
    job.remove(job.keys().member(numbered(2)));
  });
  store.fail_next(FakeKvStore::Fault::kNotExecuted);
  EXPECT_TRUE(await_job(store, job.keys(), {20s, "w2 has not left", is_gone}));
}

TEST_F(JobControl, WaitsNoLongerThanTheLimit) {
  const Status late =
      await_job(store, job.keys(), {300ms, "w2 has not left", [](const elastic::View&) { return false; }});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(late.error().message, "w2 has not left after 0.3 s");
}

TEST_F(JobControl, WaitsForNothingMoreOnceTheJobTookItsEtcdAlong) {
  bool is_over = false;
  const JobWait wait{20s, "the job has not stopped", [](const elastic::View&) { return false; },
                     [&] {
                       is_over = true;
                       return true;
                     }};
  store.fail_next(FakeKvStore::Fault::kNotExecuted);
  EXPECT_TRUE(await_job(store, job.keys(), wait));
  EXPECT_TRUE(is_over);
}

TEST_F(JobControl, RemovesAJobThatNobodyWorksFor) {
  job.write(job.keys().past_generation({1}), "something");
  job.write(job.keys().finished(), "finished by somebody\n");
  const HandWrittenJob other(store, "first-2");
  const auto removed = remove_job(store, "first", "", false);
  ASSERT_TRUE(removed) << removed.error();
  EXPECT_EQ(removed->keys, 3U);
  EXPECT_TRUE(removed->was_finished);
  EXPECT_FALSE(look_at_job(store, job.keys(), "first"));
  EXPECT_TRUE(look_at_job(store, other.keys(), "first-2"));
  EXPECT_EQ(remove_job(store, "first", "", false).error().code, ErrorCode::kNotFound);
}

TEST_F(JobControl, TakesNoJobFromItsWorkersUnlessForced) {
  job.train();
  const auto refused = remove_job(store, "first", "", false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "job 'first' has 2 workers that live");
  EXPECT_TRUE(look_at_job(store, job.keys(), "first"));
  const auto forced = remove_job(store, "first", "", true);
  ASSERT_TRUE(forced);
  EXPECT_EQ(forced->members, 2U);
  EXPECT_FALSE(look_at_job(store, job.keys(), "first"));
}

}  // namespace
}  // namespace everstep::launcher
