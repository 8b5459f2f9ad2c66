#include "launcher/status/job_status.h"

#include <sstream>

#include <gmock/gmock.h>

#include "launcher/status/job_address.h"
#include "launcher/status/job_list.h"
#include "tests/elastic/fake_kv_store.h"
#include "tests/launcher/status/hand_written_job.h"

namespace everstep::launcher {
namespace {

using elastic::MemberState;
using testing::HasSubstr;

constexpr const char* kSecret = "a secret of the job";

class JobStatusTest : public testing::Test {
 protected:
  JobStatus status(const JobSecret& secret = {}) {
    const auto view = look_at_job(store, job.keys(), "first");
    EXPECT_TRUE(view) << view.error();
    return read_job_status(*view, "first", secret);
  }
  std::string state() {
    const JobStatus now = status();
    return now.state + (now.why.empty() ? "" : " (" + now.why + ")");
  }

  elastic::FakeKvStore store;
  HandWrittenJob job{store, "first"};
};

TEST_F(JobStatusTest, OfAJobThatTrainsHasEverything) {
  job.train();
  job.add_worker(3, MemberState::kWarming);
  EXPECT_EQ(status_text(status()),
            R"(job first: training
  step        120 of 1000, loss 3.4210
  update      learning rate 0, gradient norm 0.0000
  speed       12.3 ktokens/s, busy 0.87, goodput 0.96
  generation  3, amdp D=2 P=1 W=1, from the beginning: w2 joined
  survives    no loss without going back to a checkpoint
  leader      w1 (abcd0001)
  HEAD        step 110, position 1760, checkpoint 11 of the job, generation 3

worker  id        group  device  host    address        compute ms  ms by stage  state
------  --------  -----  ------  ------  -------------  ----------  -----------  --------
w1      abcd0001      0       0  node-1  10.0.0.1:4711        81.0  -            training
w2      abcd0002      0       1  node-2  10.0.0.2:4711        79.5  -            training
w3      abcd0003      -       -  node-3  10.0.0.3:4711           -  -            warming
authenticity not checked: there is no --secret-file
)");
}

TEST_F(JobStatusTest, SaysHowManyMayBeLostAtOnceAndWhoWouldBeTooMany) {
  job.train();
  elastic::RosterRecord guarded = HandWrittenJob::pair(4);
  guarded.plan.guards = {{numbered(2)}, {numbered(1)}};
  job.open(guarded);
  EXPECT_THAT(status_text(status()),
              testing::HasSubstr("survives    any 1 worker, any 1 host, lost at once, without "
                                 "touching disk; workers w1 and w2 at once would be too many\n"));
  const storage::Json json = status_json(status());
  EXPECT_EQ(*json.find("survives")->find("workers"), storage::Json(1));
  EXPECT_EQ(std::get<storage::Json::Array>(json.find("survives")->find("too_many")->value()).size(), 2U);
}

TEST_F(JobStatusTest, NamesAWorkerThatIsMuchSlowerThanTheOthers) {
  job.train();
  EXPECT_EQ(status().straggler, std::nullopt);
  elastic::ProgressRecord progress{120, 1000, 3.421, 12'300, 0.87, 0.96, "training", {80'000, 480'000}};
  job.write(job.keys().progress(), to_text(progress));
  EXPECT_EQ(status().straggler, "w2 computes 6.0 times as long as the median worker");
  EXPECT_THAT(status_text(status()), testing::HasSubstr("straggler   w2 computes 6.0 times"));
}

TEST_F(JobStatusTest, TellsTheTimesOfStagesAndWhoIsSlowForWhatItHasToDo) {
  job.train();
  elastic::ProgressRecord progress{120, 1000, 3.421, 12'300, 0.87, 0.96, "training", {80'000, 480'000}};
  progress.generation = status().generation->roster.attempt.generation;
  progress.updates = 8;
  progress.stage_us = {10'000, 61'500};
  progress.slowness_percent = {100, 140};
  job.write(job.keys().progress(), to_text(progress));
  EXPECT_EQ(status().straggler, std::nullopt) << "its stage is the larger one";
  EXPECT_THAT(status_text(status()), testing::HasSubstr("1: 61.5"));
  const storage::Json json = status_json(status());
  const storage::Json& second = std::get<storage::Json::Array>(json.find("workers")->value())[1];
  EXPECT_EQ(*second.find("stages"),
            storage::Json::array().append(storage::Json::object().set("stage", 1).set("ms", 61.5)));
  EXPECT_EQ(*second.find("slowness"), storage::Json(1.4));

  progress.learning_rate = 6e-4;
  progress.gradient_norm = 0.5;
  progress.validation_loss = 3.75;
  progress.skipped = 2;
  progress.update_us = 500'000;
  progress.slowness_percent = {100, 310};
  job.write(job.keys().progress(), to_text(progress));
  EXPECT_EQ(status().straggler, "w2 is 3.1 times slower than the median worker");

  progress.generation = {99};
  job.write(job.keys().progress(), to_text(progress));
  EXPECT_THAT(status().workers[1].stage_times, testing::IsEmpty()) << "of other seats";
}

TEST_F(JobStatusTest, SaysWhatAJobWaitsFor) {
  EXPECT_EQ(state(), "no workers (everstep worker adds one)");
  job.add_worker(1);
  job.add_worker(2, MemberState::kWarming);
  EXPECT_EQ(state(), "waiting for workers (1 worker more: 1 ready, --min-workers=2, 1 warming)");
  job.add_worker(2);
  EXPECT_EQ(state(), "starting");
  job.open(HandWrittenJob::pair(1));
  EXPECT_EQ(state(), "training");
  job.remove(job.keys().ready({{1}, 5}, numbered(2)));
  EXPECT_EQ(state(), "starting (1 of 2 workers have the state in place)");
  job.remove(job.keys().member(numbered(2)));
  EXPECT_EQ(state(), "waiting for workers (1 worker more: 1 ready, --min-workers=2)");
  job.add_worker(3);
  EXPECT_EQ(state(), "recovering");
  job.write(job.keys().finished(), "finished by somebody\n");
  EXPECT_EQ(state(), "finished");
}

TEST_F(JobStatusTest, TellsAChangeThatIsUnderWay) {
  job.train();
  job.add_worker(2, MemberState::kLeaving);
  elastic::RosterRecord next = HandWrittenJob::pair(4);
  next.plan.workers = {numbered(1), numbered(3)};
  next.donors = {numbered(2)};
  job.write(job.keys().proposal(), to_text(next));
  job.write(job.keys().prepared(next.attempt, numbered(1)), to_text(elastic::PreparedRecord{true, ""}));
  job.write(job.keys().prepared(next.attempt, numbered(3)), to_text(elastic::PreparedRecord{false, "no route"}));
  EXPECT_EQ(state(), "training");
  std::string text = status_text(status());
  EXPECT_THAT(text, HasSubstr("  coming      generation 4, amdp D=2 P=1 W=1, 1 of 3 are connected\n"));
  EXPECT_THAT(text, HasSubstr("leaving: SIGTERM\n"));

  elastic::DrainRecord drain;
  drain.attempt = {{3}, 5};
  drain.inside_window = true;
  drain.reason = "w2 leaves";
  job.write(job.keys().drain(), to_text(drain));
  EXPECT_EQ(state(), "draining (w2 leaves)");
  EXPECT_THAT(status_text(status()), HasSubstr("  drain       inside the window: w2 leaves\n"));

  job.write(job.keys().stop_request(), to_text(elastic::RequestRecord{1, {3}, "everstep stop", 0}));
  EXPECT_EQ(state(), "stopping (w2 leaves)");
}

TEST_F(JobStatusTest, TellsAJobThatWasStoppedFromOneThatWaits) {
  job.train();
  elastic::DrainRecord drain;
  drain.attempt = {{3}, 5};
  drain.ends_job = true;
  drain.reason = "everstep stop";
  job.write(job.keys().drain(), to_text(drain));
  EXPECT_EQ(state(), "stopping (everstep stop)");
  EXPECT_FALSE(status().is_over());
  for (const std::uint64_t number : {1, 2}) job.remove(job.keys().member(numbered(number)));
  EXPECT_EQ(state(), "stopped (everstep stop)");
  EXPECT_TRUE(status().is_over());
  job.remove(job.keys().drain());
  EXPECT_EQ(state(), "no workers (everstep worker adds one)");
  EXPECT_FALSE(status().is_over()) << "others may come";
}

TEST_F(JobStatusTest, FitsANarrowTerminal) {
  job.train();
  std::istringstream lines(status_text(status(), 60));
  int tables = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("worker  ")) ++tables;
    EXPECT_LE(tables > 0 ? line.size() : 0, 60U) << line;
  }
  EXPECT_EQ(tables, 2);
}

TEST_F(JobStatusTest, ListsSparesAndThoseWhoHandOver) {
  for (const std::uint64_t number : {1, 2, 3, 4, 5}) job.add_worker(number);
  elastic::RosterRecord roster = HandWrittenJob::pair(3);
  roster.plan.spares = {numbered(5)};
  roster.donors = {numbered(4)};
  job.open(roster);
  std::string states;
  for (const WorkerStatus& worker : status().workers) states += worker.record.name + " " + worker.state + "\n";
  EXPECT_EQ(states, "w1 training\nw2 training\nw5 spare\nw3 standing by\nw4 handing over\n");
}

TEST_F(JobStatusTest, ListsHostsThatAreShutOut) {
  job.train();
  job.write(job.keys().quarantine("node-9"), to_text(elastic::QuarantineRecord{2, 4}));
  EXPECT_THAT(status_text(status()), HasSubstr("  shut out    node-9 for 4 s after its last strike, 2 times so far\n"));
}

TEST_F(JobStatusTest, ShowsTheAddressesThatPeopleKnow) {
  job.train();
  elastic::MemberRecord both = job.add_worker(3);
  both.address = "10.0.0.3:4711 unix=some-boot/run/user/0/everstep/port-4711.sock";
  job.write(job.keys().member(both.id), to_text(both));
  elastic::MemberRecord local = job.add_worker(4);
  local.address = "unix=some-boot/run/user/0/everstep/process-7.sock";
  job.write(job.keys().member(local.id), to_text(local));
  job.write(job.keys().quarantine(local.address), to_text(elastic::QuarantineRecord{1, 5}));
  const std::string text = status_text(status());
  EXPECT_THAT(text, HasSubstr(" 10.0.0.3:4711 "));
  EXPECT_THAT(text, HasSubstr(" this host only "));
  EXPECT_THAT(text, HasSubstr("shut out    /run/user/0/everstep/process-7.sock for 5 s"));
  EXPECT_THAT(text, testing::Not(HasSubstr("some-boot")));
  const std::string json = to_text(status_json(status()));
  EXPECT_THAT(json, HasSubstr(both.address));
  EXPECT_THAT(json, HasSubstr(local.address));
}

TEST_F(JobStatusTest, LetsNobodyWriteToTheTerminal) {
  job.train();
  elastic::MemberRecord evil = job.add_worker(3);
  evil.name = "w3\x1b[2J";
  evil.host = "\u009b31mred";
  evil.address = "a\tb";
  evil.state = MemberState::kLeaving;
  evil.leave_reason = "line\nbreak";
  job.write(job.keys().member(evil.id), to_text(evil));
  job.open(HandWrittenJob::pair(4), "\x1b]0;title\x07");
  const std::string text = status_text(status());
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find('\t'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_EQ(text.find("\u009b"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("w3?[2J"));
  EXPECT_THAT(text, HasSubstr("leaving: line?break\n"));
  const auto json = storage::parse_json(to_text(status_json(status())));
  ASSERT_TRUE(json) << json.error();
}

TEST_F(JobStatusTest, WithTheSecretShowsOnlyWhatThoseWroteWhoKnowIt) {
  const HandWrittenJob secret_job(store, "second", kSecret);
  secret_job.train();
  elastic::MemberRecord forged = secret_job.add_worker(3);
  forged.address = "6.6.6.6:666";
  secret_job.forge(secret_job.keys().member(forged.id), to_text(forged) + "\nseal " + std::string(64, '0') + "\n");
  const auto status_with = [&](const JobSecret& secret) {
    return read_job_status(*look_at_job(store, secret_job.keys(), "second"), "second", secret);
  };
  EXPECT_EQ(status_with({}).workers.size(), 3U) << "seals are taken off unseen";
  EXPECT_EQ(status_with({}).state, "training");
  const JobStatus checked = status_with(JobSecret::of(kSecret));
  ASSERT_EQ(checked.workers.size(), 2U);
  EXPECT_EQ(checked.state, "training");
  EXPECT_THAT(status_text(checked), HasSubstr("authenticity checked\n"));
  secret_job.forge(secret_job.keys().head(), "garbage");
  EXPECT_EQ(status_with(JobSecret::of(kSecret)).state, "damaged");
  EXPECT_EQ(status_with(JobSecret::of(kSecret)).why, "its generation or its HEAD cannot be read, or is forged");
}

TEST_F(JobStatusTest, SurvivesKeysThatMakeNoSense) {
  job.train();
  job.write(job.keys().member(numbered(2)), "nonsense");
  job.write(job.keys().progress(), "nonsense");
  job.write(job.keys().leader(), "nonsense");
  EXPECT_EQ(status().workers.size(), 1U);
  EXPECT_EQ(status().leader(), nullptr);
  job.write(job.keys().generation(), "nonsense");
  EXPECT_EQ(state(), "damaged (its generation or its HEAD cannot be read, or is forged)");
  job.write(job.keys().spec(), "nonsense");
  EXPECT_EQ(state(), "damaged (its spec cannot be read)");
  EXPECT_FALSE(status_text(status()).empty());
}

TEST_F(JobStatusTest, AsJsonHasTheSameValues) {
  job.train();
  const storage::Json json = status_json(status());
  EXPECT_EQ(*json.find("state"), storage::Json("training"));
  EXPECT_EQ(*json.find("progress")->find("step"), storage::Json(120));
  EXPECT_EQ(*json.find("generation")->find("plan")->find("depth"), storage::Json(2));
  EXPECT_EQ(*json.find("head")->find("step"), storage::Json(110));
  EXPECT_EQ(*json.find("leader"), storage::Json(to_string(numbered(1))));
  const auto& workers = std::get<storage::Json::Array>(json.find("workers")->value());
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(*workers[1].find("device"), storage::Json(1));
  EXPECT_EQ(*workers[1].find("state"), storage::Json("training"));
}

TEST_F(JobStatusTest, HasNoJobWithoutASpec) {
  const auto view = look_at_job(store, elastic::Keys("other"), "other");
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(view.error().message, "there is no job 'other' in this etcd");
}

TEST_F(JobStatusTest, IsARowInTheListOfJobs) {
  job.train();
  const HandWrittenJob second(store, "second");
  second.write("/everstep/v1/jobs/NOT A JOB/live/spec", "nonsense");
  const auto jobs = list_jobs(store, {});
  ASSERT_TRUE(jobs) << jobs.error();
  EXPECT_EQ(job_list_text(*jobs),
            "job     state           step  workers  generation  plan\n"
            "------  ----------  --------  -------  ----------  ----------------\n"
            "first   training    120/1000        2           3  amdp D=2 P=1 W=1\n"
            "second  no workers         -        0           -  -\n");
  EXPECT_EQ(std::get<storage::Json::Array>(job_list_json(*jobs).find("jobs")->value()).size(), 2U);
  EXPECT_EQ(job_list_text({}), "no jobs\n");
}

}  // namespace
}  // namespace everstep::launcher
