// What somebody can do to a job with a secret who may write to its etcd, but does not know the secret: write garbage,
// delete, play old values again and put them under other keys. The job goes on, stalls or ends, and says why; what it
// has saved is whole.
#include <filesystem>
#include <map>
#include <mutex>

#include <gmock/gmock.h>

#include "elastic/keys.h"
#include "elastic/records.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kCall{5000};
constexpr const char* kGarbage = "attempt 1-00000001\nend\n";

class ElasticStranger : public ElasticJob {
 protected:
  ElasticStranger() {
    file("secret", "a secret of the job\n");
    std::filesystem::permissions(path("secret"), std::filesystem::perms::owner_read);
    watch_ = store_->watch(keys_.prefix(), {[this](const std::vector<elastic::WatchEvent>& events) {
                                              const std::scoped_lock lock(mutex_);
                                              for (const elastic::WatchEvent& event : events) {
                                                if (!event.deleted) seen_[event.item.key].push_back(event.item.value);
                                              }
                                            },
                                            [] {}});
  }
  ~ElasticStranger() override { watch_.reset(); }

  std::string secret() const { return "--secret-file=" + path("secret"); }
  Words options(const Words& more = {}) const {
    Words words{"--etcd=" + cluster_.endpoint(0), "--job=job", secret(), "--workers=2", "--shapes=2=2x1,3=3x1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Ended tool(Words words) const {
    words.insert(words.end(), {"--etcd=" + cluster_.endpoint(0), secret()});
    return run_program(words);
  }

  // Two generations, so that there are records of one that is over.
  void start_job() {
    ASSERT_TRUE(starts(2, options()));
    const int before = generation();
    const Ended asked = tool({"scale", "3", "--job=job"});
    ASSERT_EQ(asked.exit_code, 0) << asked.log;
    ASSERT_TRUE(trains_with(3, before));
    ASSERT_TRUE(saves(step() + 1));
  }

  void write(const std::string& key, const std::string& value) {
    ASSERT_TRUE(store_->transact({{}, {elastic::put(key, value)}}, kCall).ok());
  }
  void remove(const std::string& key) { ASSERT_TRUE(store_->transact({{}, {elastic::remove(key)}}, kCall).ok()); }
  std::map<std::string, std::vector<std::string>> seen() const {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }
  std::vector<elastic::KeyValue> now(const std::string& prefix) const {
    const auto reply = store_->transact({{}, {elastic::list(prefix)}}, kCall);
    return reply ? reply->reads[0] : std::vector<elastic::KeyValue>{};
  }

  // One key of each kind that there was, by what stands before its attempt, worker or number: "held", "ask/scale".
  std::map<std::string, std::string> kinds() const {
    std::map<std::string, std::string> found;
    for (const auto& [key, values] : seen()) {
      std::string kind = key.substr(keys_.prefix().size());
      if (kind.starts_with("live/")) kind = kind.substr(5);
      if (kind != "ckpt/HEAD" && kind != "ckpt/abandoned" && !kind.starts_with("ask/")) {
        kind = kind.substr(0, kind.find('/'));
      }
      found[kind] = key;
    }
    return found;
  }

  void expect_whole() const { expect_proofs({secret()}); }
  // Ends by itself, says why, and can be gone on with.
  void expect_end_and_resume(const std::string& reason) {
    const Ended ended = expect_end(65);
    EXPECT_THAT(ended.log, HasSubstr(reason));
    EXPECT_THAT(ended.log, HasSubstr("everstep resume"));
    expect_whole();
    ASSERT_EQ(tool({"job", "rm", "job", "--force"}).exit_code, 0);
    start(options({"--resume", "--steps=" + std::to_string(step() + 30)}), "second");
    expect_end();
    expect_whole();
  }

  const elastic::Keys keys_{"job"};
  elastic::EtcdCluster cluster_;
  std::unique_ptr<elastic::KvStore> store_ = cluster_.connect();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> seen_;  // all values that each key ever had
  std::unique_ptr<elastic::Watch> watch_;
};

// gen and HEAD have tests of their own: they decide.
TEST_F(ElasticStranger, WhoWritesAndSwapsEveryOtherRecordIsNotHeard) {
  start_job();
  const auto kinds = this->kinds();
  for (const char* kind : {"leader", "members", "held", "ready", "proposal", "prepared", "drain", "progress", "ack",
                           "gens", "ckpt-log", "ask/scale"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  const std::string gen = now(keys_.generation()).front().value;
  const auto attempt = elastic::parse_generation(gen.substr(0, gen.rfind("\nseal ")))->roster.attempt;
  std::vector<std::string> targets{keys_.finished(),       keys_.stop_request(),  keys_.scale_request(),
                                   keys_.abandoned_save(), keys_.quarantine("a"), keys_.drain(),
                                   keys_.proposal(),       keys_.progress(),      keys_.leader()};
  for (const elastic::KeyValue& member : now(keys_.members())) {
    const WorkerId id = *parse_worker_id(member.key.substr(keys_.members().size()));
    for (const std::string& key : {keys_.drain_request(id), keys_.held(attempt, id), keys_.promise(attempt, id),
                                   keys_.prepared(attempt, id), keys_.suspect(attempt, id, id)}) {
      targets.push_back(key);
    }
  }
  for (const std::string& key : targets) {
    write(key, kGarbage);
    for (const auto& [kind, source] : kinds) {
      if (source != key) write(key, seen().at(source).back());
    }
  }
  EXPECT_TRUE(says("event=forged_record key=" + keys_.finished()));
  EXPECT_TRUE(goes_on());
  EXPECT_TRUE(saves(step() + 1)) << "somebody leads again";
  // One worker seems to be gone, and comes back as another.
  const std::string member = now(keys_.members()).back().key;
  write(member, kGarbage);
  EXPECT_TRUE(says("evicted: its member key is gone"));
  EXPECT_TRUE(goes_on());
  EXPECT_TRUE(saves(step() + 1));
  expect_stop();
  expect_whole();
}

TEST_F(ElasticStranger, WhoPlaysEveryOtherRecordAgainOrDeletesItChangesNothing) {
  start_job();
  const auto gone = keys_.member(*parse_worker_id(now(keys_.members()).front().key.substr(keys_.members().size())));
  const std::string ghost = now(gone).front().value;
  const std::string leader = now(keys_.leader()).front().value;
  remove(gone);
  ASSERT_TRUE(says("evicted: its member key is gone"));
  ASSERT_TRUE(goes_on());
  // Those of a worker that is gone, without its lease: it cannot lead any more.
  write(gone, ghost);
  write(keys_.leader(), leader);
  for (const auto& [key, values] : seen()) {
    const bool decides = key == keys_.generation() || key == keys_.head() || key == keys_.spec();
    if (decides || key.starts_with(keys_.members()) || key == keys_.leader()) continue;
    for (const std::string& value : values) write(key, value);
  }
  EXPECT_TRUE(goes_on());
  EXPECT_TRUE(saves(step() + 1));
  // An acknowledgement that is deleted before the leader has seen it would keep the generation from saving.
  for (const std::string& prefix :
       {keys_.leader(), keys_.proposal(), keys_.drain(), keys_.all_held(), keys_.all_ready(), keys_.progress(),
        keys_.past_generations(), keys_.past_heads()}) {
    ASSERT_TRUE(store_->transact({{}, {elastic::remove_prefix(prefix)}}, kCall).ok());
  }
  EXPECT_TRUE(goes_on());
  EXPECT_TRUE(saves(step() + 1));
  expect_stop();
  expect_whole();
}

TEST_F(ElasticStranger, WhoForgesTheGenerationMakesTheJobStall) {
  start_job();
  const int before = generation();
  write(keys_.generation(), kGarbage);
  EXPECT_TRUE(says("event=forged_record key=" + keys_.generation()));
  EXPECT_TRUE(says("event=records_damaged"));
  EXPECT_TRUE(goes_on()) << "but nothing of it counts";
  EXPECT_EQ(generation(), before);
  train().signal(SIGINT);
  ASSERT_TRUE(says("event=stopping"));
  expect_stop();
  expect_whole();
}

TEST_F(ElasticStranger, WhoPlaysAnOldGenerationAgainEndsTheJob) {
  start_job();
  write(keys_.generation(), seen().at(keys_.generation()).front());
  expect_end_and_resume("the job's generation went back from");
}

TEST_F(ElasticStranger, WhoDeletesTheGenerationEndsTheJob) {
  start_job();
  remove(keys_.generation());
  expect_end_and_resume("the job's generation was deleted");
}

TEST_F(ElasticStranger, WhoPlaysAnOldHeadAgainEndsTheJob) {
  start_job();
  write(keys_.head(), seen().at(keys_.head()).front());
  expect_end_and_resume("the job's newest checkpoint went back from");
}

TEST_F(ElasticStranger, WhoDeletesHeadEndsTheJob) {
  start_job();
  remove(keys_.head());
  expect_end_and_resume("the job's newest checkpoint was deleted");
}

// A backup is played back while nobody runs: those who come later have seen nothing, but the directory has.
TEST_F(ElasticStranger, WhoRestoresABackupEndsTheJobOfThoseWhoComeLater) {
  start_job();
  cluster_.keep_copy(0);
  cluster_.restart(0);
  cluster_.wait_until_healthy();
  ASSERT_TRUE(saves(step() + 50));
  for (const int number : {0, 1, 2}) send_signal(worker(number), SIGKILL);
  (void)train().wait(std::chrono::seconds(30));
  cluster_.restore_copy(0);
  cluster_.restart(0);
  cluster_.wait_until_healthy();
  const auto newest = [&] {
    return run_program({"checkpoint", "list", "--checkpoint-dir=" + path("saves"), secret()});
  };
  const std::string before = newest().out;
  start(options(), "later");
  const Ended ended = expect_end(65);
  EXPECT_THAT(ended.log, HasSubstr("is in the job's directory: etcd went back in time"));
  EXPECT_EQ(newest().out, before) << "HEAD is where it was";
  expect_whole();
}

}  // namespace
}  // namespace everstep::launcher
