// Who cannot take part in a job is told why in one line, and the job does not notice.
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>

#include "base/version.h"
#include "launcher/job/job_setup.h"
#include "launcher/supervise/etcd_process.h"
#include "tests/elastic/etcd/certificates.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/supervise/elastic_job.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSecret = "a secret of the job";

class ElasticRefusal : public ElasticJob {
 protected:
  std::string secret_file(const std::string& name, const std::string& secret) const {
    file(name, secret + "\n");
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return "--secret-file=" + path(name);
  }

  std::string right_secret() const { return secret_file("right", kSecret); }
  std::string wrong_secret() const { return secret_file("wrong", "the secret of another job"); }

  // What the program says when it is refused: one line and nothing else.
  static std::string refusal(const Words& words, int exit_code) {
    const Ended ended = run_program(words);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.log;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.log.substr(0, 10), "everstep: ");
    EXPECT_EQ(ended.log.find('\n'), ended.log.size() - 1) << ended.log;
    return ended.log;
  }

  Words worker_words(const Words& more) const {
    Words words{"worker", worker_config(), "--job=job"};
    for (const std::string& option : more) {
      const std::string name = option.substr(0, option.find('='));
      std::erase_if(words, [&](const std::string& word) { return word.starts_with(name + "="); });
      words.push_back(option);
    }
    return words;
  }

  void start_with(int workers, const Words& options) {
    start(options);
    ASSERT_TRUE(trains_with(workers));
    started_ = generation();
  }

  // The job went on as if nothing had been.
  void expect_undisturbed(const Words& more = {}) {
    EXPECT_TRUE(goes_on());
    EXPECT_EQ(generation(), started_);
    expect_stop();
    expect_proofs(more);
  }

 private:
  int started_ = 0;
};

TEST_F(ElasticRefusal, IsWhatOtherSettingsGet) {
  const elastic::EtcdCluster cluster;
  const std::string etcd = "--etcd=" + cluster.endpoint(0);
  start_with(4, {etcd, "--job=job", "--shapes=4=4x1"});
  const auto joining = [&](const Words& more) {
    Words all{etcd, "--job=job", "--shapes=4=4x1", "--workers=1"};
    all.insert(all.end(), more.begin(), more.end());
    return train_words(all, "other");
  };
  EXPECT_THAT(refusal(joining({"--seed=7", "--dropout=0"}), 64),
              HasSubstr("job 'job' runs with other settings: --dropout (was 0.1, is 0), --seed (was 1, is 7)"));
  file("other.txt", std::string(8000, 'x'));
  EXPECT_THAT(refusal(joining({"--data=" + path("other.txt")}), 64), HasSubstr("other settings: --data (another file"));
  EXPECT_THAT(refusal(worker_words({"--data=" + path("other.txt")}), 64),
              HasSubstr("other settings: --data (another file"));
  EXPECT_THAT(refusal(worker_words({"--data=" + path("nowhere")}), 64),
              AllOf(HasSubstr("there is no data at"), HasSubstr("nowhere"), HasSubstr("--data=PATH")));
  expect_undisturbed();
}

TEST_F(ElasticRefusal, IsWhatAWrongSecretGets) {
  const std::string right = right_secret();
  start_with(4, {right, "--shapes=4=4x1"});
  EXPECT_THAT(refusal(worker_words({wrong_secret()}), 64), HasSubstr("job 'job' was started with another secret"));
  EXPECT_THAT(refusal(worker_words({}), 64), AllOf(HasSubstr("job 'job' has a secret"), HasSubstr("--secret-file")));
  expect_undisturbed({right});
}

// So many take a while to load on a small machine; whoever comes within --join-debounce comes at once.
TEST_F(ElasticRefusal, IsWhatWrongSecretsInACrowdGetWhoseOthersAreOneGeneration) {
  start_with(2, {right_secret(), "--workers=2", "--shapes=2=2x1,14=7x2", "--window=16", "--join-debounce=12"});
  const int before = generation();
  std::vector<RunningProgram*> refused;
  for (int number = 0; number < 18; ++number) {
    const bool may_join = number % 3 != 0;
    RunningProgram& one = add_worker("crowd-" + std::to_string(number), {may_join ? right_secret() : wrong_secret()});
    if (!may_join) refused.push_back(&one);
  }
  for (RunningProgram* one : refused) {
    const Ended ended = one->wait(seconds(60));
    EXPECT_EQ(ended.exit_code, 64);
    EXPECT_THAT(ended.log, HasSubstr("was started with another secret"));
  }
  ASSERT_TRUE(trains_with(14, before));
  ASSERT_TRUE(goes_on(5));
  expect_stop();
  EXPECT_EQ(generation(), before + 1);
  expect_proofs({right_secret()});
}

TEST_F(ElasticRefusal, OfAWrongSecretWritesNothingToEtcd) {
  const elastic::EtcdCluster cluster;
  const auto store = cluster.connect();
  ASSERT_TRUE(create_job(*store, "job", {}, kSecret, std::nullopt));
  const auto revision = [&] { return store->transact({{}, {elastic::get("any")}}, seconds(1)).value().revision; };
  const elastic::Revision before = revision();
  const Words words{"worker", "--etcd=" + cluster.endpoint(0), "--job=job", wrong_secret()};
  EXPECT_THAT(refusal(words, 64), HasSubstr("job 'job' was started with another secret"));
  EXPECT_EQ(revision(), before);
}

TEST_F(ElasticRefusal, IsWhatAnotherBuildGets) {
  const elastic::EtcdCluster cluster;
  start_with(4, {"--etcd=" + cluster.endpoint(0), "--job=job", "--shapes=4=4x1"});
  const auto store = cluster.connect();
  const auto found = find_job(*store, "job", "");
  ASSERT_TRUE(found.ok() && found->has_value());
  elastic::JobSpec spec = (*found)->spec;
  spec.build = "0.0.1";
  ASSERT_TRUE(create_job(*store, "older", spec, "", std::nullopt).ok());
  EXPECT_THAT(refusal(worker_words({"--job=older"}), 64),
              HasSubstr("job 'older' runs everstep 0.0.1, and this is " + std::string(kVersion)));
  expect_undisturbed();
}

TEST_F(ElasticRefusal, IsWhatAWrongNameGets) {
  start_with(4, {"--shapes=4=4x1"});
  EXPECT_THAT(refusal(worker_words({"--job=another"}), 64), HasSubstr("there is no job 'another'"));
  EXPECT_THAT(refusal(worker_words({"--job=a/b"}), 64), HasSubstr("--job=a/b"));
  EXPECT_THAT(refusal(train_words({"--job=a/b"}, "other"), 64), HasSubstr("--job=a/b"));
  EXPECT_FALSE(std::filesystem::exists(path("other")));
  expect_undisturbed();
}

TEST_F(ElasticRefusal, IsWhatAWrongAddressGets) {
  start_with(4, {"--shapes=4=4x1"});
  const auto before = std::chrono::steady_clock::now();
  // An address for documentation, where nobody is. Asking there would take long.
  EXPECT_THAT(refusal(worker_words({"--etcd=http://192.0.2.1:2379"}), 64),
              AllOf(HasSubstr("http://192.0.2.1:2379"), HasSubstr("--etcd-plain-text")));
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(1000));
  const std::string nowhere = "http://127.0.0.1:" + std::to_string(unused_port());
  EXPECT_THAT(refusal(worker_words({"--etcd=" + nowhere}), 69), HasSubstr("etcd at " + nowhere));
  expect_undisturbed();
}

TEST_F(ElasticRefusal, IsWhatAnExpiredCertificateGets) {
  const elastic::Certificates authority;
  const elastic::ServerCertificates server = authority.make("server", 1);
  const elastic::EtcdCluster cluster(1, server);
  const auto with = [&](const elastic::ServerCertificates& files) {
    return Words{"--etcd=" + cluster.endpoint(0), "--etcd-ca=" + files.ca, "--etcd-cert=" + files.certificate,
                 "--etcd-key=" + files.key, "--job=job"};
  };
  Words options = with(authority.make("client", 1));
  Words train = options;
  train.insert(train.end(), {"--shapes=4=4x1"});
  start_with(4, train);
  EXPECT_THAT(refusal(worker_words(with(authority.make("expired", -1))), 69), HasSubstr("certificate"));
  EXPECT_THAT(refusal({"worker", "--etcd=" + cluster.endpoint(0), "--job=job"}, 64), HasSubstr("certificate"));
  expect_undisturbed();
}

}  // namespace
}  // namespace everstep::launcher
