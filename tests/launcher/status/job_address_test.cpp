#include "launcher/status/job_address.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "launcher/cli/files.h"
#include "launcher/job/train_request.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

Config config_of(std::vector<OptionSpec> options, const std::map<std::string, std::string>& values,
                 const Environment& environment = {}) {
  CommandSpec spec{.name = "status"};
  spec.options = std::move(options);
  ParsedArgs args;
  args.values = values;
  auto config = merge_config(spec, {.args = args, .environment = environment});
  EXPECT_TRUE(config) << config.error();
  return *std::move(config);
}

JobAddress address_of(const std::map<std::string, std::string>& values, const Environment& environment = {}) {
  Outcome failure;
  const JobAddress address = read_job_address(config_of(job_address_options(), values, environment), failure);
  EXPECT_FALSE(failure) << failure->error;
  return address;
}

Failure refusal_of(const std::map<std::string, std::string>& values) {
  Outcome failure;
  read_named_job(config_of(job_address_options(), values), failure);
  EXPECT_TRUE(failure);
  return failure.value_or(Failure(Error{}));
}

TEST(JobAddress, IsWhatTheOptionsSay) {
  const JobAddress address = address_of({{"etcd", "http://127.0.0.1:2379,http://127.0.0.1:2380"}, {"job", "first"}});
  EXPECT_EQ(address.job, "first");
  EXPECT_EQ(address.etcd.urls, (std::vector<std::string>{"http://127.0.0.1:2379", "http://127.0.0.1:2380"}));
}

TEST(JobAddress, IsWhatTheDirectoryOfARunSays) {
  const TemporaryDirectory directory;
  const std::string run = directory.path().string();
  ASSERT_TRUE(write_job_address(
      run, config_of(train_options(), {{"etcd", "http://127.0.0.1:4242"}, {"job", "first"}, {"etcd-ca", "ca.pem"}})));
  const auto text = read_file(job_address_file(run), 1000);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "etcd = http://127.0.0.1:4242\netcd-ca = " + (std::filesystem::current_path() / "ca.pem").string() +
                       "\netcd-plain-text = false\njob = first\n");

  ASSERT_TRUE(
      write_job_address(run, config_of(train_options(), {{"etcd", "http://127.0.0.1:4242"}, {"job", "first"}})));
  const JobAddress address = address_of({{"dir", run}}, {{"EVERSTEP_ETCD", "http://127.0.0.1:1"}});
  EXPECT_EQ(address.job, "first");
  EXPECT_EQ(address.etcd.urls, std::vector<std::string>{"http://127.0.0.1:4242"});
  EXPECT_EQ(address.directory, run);
  EXPECT_THAT(refusal_of({{"dir", run}, {"job", "second"}}).error.message, HasSubstr("does not go with --dir"));

  remove_job_address(run);
  const Failure over = refusal_of({{"dir", run}});
  EXPECT_EQ(over.exit_code, ExitCode::kUsage);
  EXPECT_THAT(over.error.message, HasSubstr("no job runs in " + run));
}

TEST(JobAddress, NamesFilesFromEveryDirectory) {
  const TemporaryDirectory directory;
  const std::string run = directory.path().string();
  std::map<std::string, std::string> values;
  for (const OptionSpec& option : train_options()) values[option.name] = "x";
  ASSERT_TRUE(write_job_address(run, config_of(train_options(), values)));
  const auto text = read_file(job_address_file(run), 1000);
  ASSERT_TRUE(text);
  const std::string file = (std::filesystem::current_path() / "x").string();
  EXPECT_EQ(*text, "etcd = x\netcd-ca = " + file + "\netcd-cert = " + file + "\netcd-key = " + file +
                       "\netcd-plain-text = x\njob = x\n");
}

TEST(JobAddress, RefusesWhatIsMissingOrMakesNoSense) {
  EXPECT_EQ(refusal_of({}).error.message, "where is the job?");
  EXPECT_EQ(refusal_of({{"etcd", "http://127.0.0.1:2379"}}).error.message, "--job is missing");
  EXPECT_THAT(refusal_of({{"etcd", "own"}, {"job", "first"}}).error.message, HasSubstr("--etcd=own"));
  EXPECT_THAT(refusal_of({{"etcd", "http://10.0.0.1:2379"}, {"job", "first"}}).error.message,
              HasSubstr("--etcd=http://10.0.0.1:2379"));
  EXPECT_THAT(refusal_of({{"etcd", "http://127.0.0.1:2379"}, {"job", "a/b"}}).error.message, HasSubstr("--job=a/b"));
  for (const auto& values : std::vector<std::map<std::string, std::string>>{
           {}, {{"etcd", "own"}, {"job", "first"}}, {{"etcd", "http://127.0.0.1:2379"}, {"job", "a/b"}}}) {
    EXPECT_EQ(refusal_of(values).exit_code, ExitCode::kUsage);
  }
}

TEST(JobAddress, IsNotTakenFromAFileThatMakesNoSense) {
  const TemporaryDirectory directory;
  const std::string run = directory.path().string();
  ASSERT_TRUE(write_file(job_address_file(run), "etcd = http://127.0.0.1:4242\nworkers = 3\n"));
  EXPECT_THAT(refusal_of({{"dir", run}}).error.message, HasSubstr("workers"));
}

}  // namespace
}  // namespace everstep::launcher
