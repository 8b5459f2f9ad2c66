#include "launcher/job/resume_config.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "launcher/cli/files.h"
#include "launcher/job/resume_rules.h"
#include "tests/launcher/job/train_config.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

const StoredPlace kPlace{"/saves", "first"};

Config given(const std::vector<std::string>& args) {
  CommandSpec spec{.name = "resume"};
  spec.options = resume_options();
  return *merge_config(spec, {.args = *parse_args(spec, args)});
}

storage::Settings stored() {
  return stored_settings(train_config({"--workers=4", "--data=corpus.txt", "--steps=50", "--lr=0.01", "--reproducible",
                                       "--job=first", "--checkpoint-dir=old", "--output=old-run", "--min-workers=3",
                                       "--metrics=:9000", "--bind=10.0.0.1", "--wire=tcp", "--etcd=http://127.0.0.1:1",
                                       "--memory-gib=3", "--secret-file=old.secret", "--checkpoint-every=7"}),
                         "10-aa");
}

std::string text_of(const Config& config, std::string_view name) {
  return config.setting(name).text.value_or("not set");
}

TEST(ResumeConfig, RepeatsWhatDecidesWhatIsComputed) {
  const Config config = resume_config(given({}), stored(), kPlace, "newest");
  EXPECT_EQ(text_of(config, "workers"), "4");
  EXPECT_EQ(text_of(config, "data"), "corpus.txt");
  EXPECT_EQ(text_of(config, "steps"), "50");
  EXPECT_EQ(text_of(config, "lr"), "0.01");
  EXPECT_EQ(text_of(config, "reproducible"), "true");
  EXPECT_EQ(text_of(config, "min-workers"), "3");
  EXPECT_EQ(text_of(config, "checkpoint-every"), "7");
  EXPECT_EQ(text_of(config, "weight-decay"), "0.1");
  EXPECT_EQ(text_of(config, "resume"), "newest");
  EXPECT_EQ(text_of(config, "checkpoint-dir"), "/saves");
  EXPECT_EQ(text_of(config, "job"), "first");
  EXPECT_TRUE(check_same_settings(stored(), stored_settings(config, "10-aa")));
}

TEST(ResumeConfig, TakesNothingOfTheOldHost) {
  const Config config = resume_config(given({}), stored(), kPlace, "newest");
  EXPECT_EQ(text_of(config, "output"), "not set");
  EXPECT_EQ(text_of(config, "metrics"), "not set");
  EXPECT_EQ(text_of(config, "secret-file"), "not set");
  EXPECT_EQ(text_of(config, "memory-gib"), "not set");
  EXPECT_EQ(text_of(config, "bind"), "not set");
  EXPECT_EQ(text_of(config, "wire"), "auto");
  EXPECT_EQ(text_of(config, "etcd"), "own");
}

TEST(ResumeConfig, LetsTheCommandLineWin) {
  const Config config =
      resume_config(given({"--workers=2", "--steps=80", "--etcd=none", "--lr=0.02"}), stored(), kPlace, "20");
  EXPECT_EQ(text_of(config, "workers"), "2");
  EXPECT_EQ(text_of(config, "steps"), "80");
  EXPECT_EQ(text_of(config, "resume"), "20");
  EXPECT_EQ(text_of(config, "etcd"), "none");
  EXPECT_EQ(text_of(config, "min-workers"), "1") << "has no meaning there";
  const Status same = check_same_settings(stored(), stored_settings(config, "10-aa"));
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("--lr (was 0.01, is 0.02)"));
}

TEST(ResumeConfig, HasTheOptionsOfTrain) {
  const Config config = resume_config(given({}), {}, kPlace, "newest");
  ASSERT_EQ(config.settings.size(), train_options().size());
  for (std::size_t i = 0; i < config.settings.size(); ++i) EXPECT_EQ(config.settings[i].name, train_options()[i].name);
  EXPECT_EQ(text_of(config, "workers"), "not set") << "an imported model has none";
  EXPECT_EQ(text_of(config, "json"), "false");
}

class StoredPlaces : public testing::Test {
 protected:
  void make_job(const std::string& job) const {
    std::filesystem::create_directories(directory.path() / job / "01234567" / "g3-p21-9f3a11c2");
    EXPECT_TRUE(write_file(directory.file(job + "/HEAD"), "head").ok());
  }
  Result<StoredPlace> find(const std::string& path, const std::string& job = "") const {
    return find_stored_place(directory.file(path), job);
  }
  StoredPlace place(const std::string& job, const std::optional<std::string>& checkpoint = std::nullopt) const {
    return {directory.path().string(), job, checkpoint};
  }

  const TemporaryDirectory directory;
};

TEST_F(StoredPlaces, AreDirectoriesOfCheckpointsJobsOrOneCheckpoint) {
  make_job("first");
  EXPECT_EQ(*find_stored_place(directory.path().string(), ""), place("first"));
  EXPECT_EQ(*find_stored_place(directory.path().string() + "/", ""), place("first"));
  EXPECT_EQ(*find("first"), place("first"));
  EXPECT_EQ(*find("first/01234567/g3-p21-9f3a11c2/"), place("first", "g3-p21-9f3a11c2"));
}

TEST_F(StoredPlaces, AreNotGuessed) {
  make_job("first");
  make_job("second");
  const auto both = find_stored_place(directory.path().string(), "");
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("holds several jobs: first, second"));
  EXPECT_EQ(*find_stored_place(directory.path().string(), "second"), place("second"));
  std::filesystem::create_directory(directory.path() / "empty");
  EXPECT_THAT(find("empty").error().message, HasSubstr("holds no job's checkpoints"));
  EXPECT_THAT(find("nowhere").error().message, HasSubstr("is no directory"));
}

}  // namespace
}  // namespace everstep::launcher
