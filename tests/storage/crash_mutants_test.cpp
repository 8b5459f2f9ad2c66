#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/crash_script.h"
#include "tests/storage/faulty_file_system.h"

// The checker of the crash tests, against mistakes that it must see.
namespace everstep::storage {
namespace {

using testing::HasSubstr;

// The first thing that is wrong after a crash, if anything ever is: the last calls first, since they come upon more.
std::string first_violation(const FaultyFileSystem& faulty, const ScriptOptions& options = {}) {
  CrashFileSystem whole;
  run_script(*faulty(whole), options);
  for (std::int64_t call = whole.calls(); call > 0; --call) {
    CrashFileSystem files;
    files.faults.crash_at_call = call;
    const Acknowledged acknowledged = run_script(*faulty(files), options);
    for (const CrashPolicy policy : {CrashPolicy{UnsyncedBytes::kLost, UnsyncedNames::kLost, 0},
                                     CrashPolicy{UnsyncedBytes::kLost, UnsyncedNames::kKept, 0},
                                     CrashPolicy{UnsyncedBytes::kTorn, UnsyncedNames::kSeeded, 0}}) {
      if (auto wrong = violation(*files.after_crash(policy), acknowledged)) return *wrong;
    }
  }
  return "";
}

TEST(CrashMutants, FilesThatAreNotSynced) { EXPECT_THAT(first_violation(without_file_sync), HasSubstr("seal")); }

TEST(CrashMutants, DirectoriesThatAreNotSynced) {
  EXPECT_THAT(first_violation(without_directory_sync), HasSubstr("it is not there"));
}

TEST(CrashMutants, AcknowledgingFilesBeforeTheyAreSynced) {
  EXPECT_THAT(first_violation(syncing_files_after_head), HasSubstr("is damaged: it has 0 bytes"));
}

TEST(CrashMutants, MovingHeadBeforeItIsSynced) {
  EXPECT_THAT(first_violation(renaming_before_sync), HasSubstr("HEAD"));
}

TEST(CrashMutants, RemovingFilesBeforeTheirDocuments) {
  EXPECT_THAT(first_violation(removing_documents_last), HasSubstr("it is not there"));
}

TEST(CrashMutants, NamesThatTwoSavesShare) {
  EXPECT_THAT(first_violation(overwriting, {.unique_names = false, .prune = nullptr}), HasSubstr("missing or damaged"));
}

// Takes HEAD's directory for all that HEAD needs.
TEST(CrashMutants, RemovingEverythingButHeadsDirectory) {
  const auto prune = [](TestJob& job) -> Status {
    const auto listing = job.catalog().list();
    FileSystem& files = job.ports().files.files;
    for (std::size_t i = 1; listing && i < listing->entries.size(); ++i) {
      const std::string directory = directory_of(kLineage, listing->entries[i].head.checkpoint);
      const auto names = files.list(directory);
      for (std::size_t k = 0; names && k < names->size(); ++k) {
        EVERSTEP_TRY(files.remove(join_path(directory, (*names)[k].name)));
      }
    }
    return {};
  };
  EXPECT_THAT(first_violation(without_fault, {.unique_names = true, .prune = prune}), HasSubstr("it is missing"));
}

// Syncing again makes nothing better: the bytes are gone, and the second answer hides it.
TEST(CrashMutants, SyncingAgainAfterAFailure) {
  CrashFileSystem whole;
  run_script(whole);
  bool caught = false;
  for (std::int64_t sync = 1; !caught && sync <= whole.syncs(); ++sync) {
    CrashFileSystem files;
    files.faults.failing_sync = sync;
    const Acknowledged acknowledged = run_script(*syncing_again_after_failure(files));
    caught = violation(*files.after_crash({}), acknowledged).has_value();
  }
  EXPECT_TRUE(caught);
}

class BlindHeadStore final : public HeadStore {
 public:
  explicit BlindHeadStore(HeadStore& inner) : inner_(inner) {}
  Result<std::optional<Head>> read() const override { return inner_.read(); }
  Status advance(const std::optional<Head>&, const Head& next) override { return inner_.advance(*inner_.read(), next); }

 private:
  HeadStore& inner_;
};

// Lets another process commit between the look at HEAD and its move.
class OvertakenHeadStore final : public HeadStore {
 public:
  OvertakenHeadStore(HeadStore& inner, std::function<void()> other) : inner_(inner), other_(std::move(other)) {}
  Result<std::optional<Head>> read() const override { return inner_.read(); }
  Status advance(const std::optional<Head>& expected, const Head& next) override {
    std::exchange(other_, [] {})();
    return inner_.advance(expected, next);
  }

 private:
  HeadStore& inner_;
  std::function<void()> other_;
};

std::optional<std::string> violation_after_a_race(bool blind) {
  CrashFileSystem files;
  Acknowledged acknowledged;
  TestJob other(files);
  TestSave save;
  save.position = {4};
  acknowledged.push_back(*other.save(save));
  save.parent = acknowledged.back();
  save.position = {8};
  BlindHeadStore blind_head(other.ports().head);
  HeadStore& head = blind ? static_cast<HeadStore&>(blind_head) : other.ports().head;
  OvertakenHeadStore overtaken(head, [&] {
    TestSave faster = save;
    faster.nonce = 1;
    acknowledged.push_back(*other.save(faster));
  });
  TestJob slow(files, &overtaken);
  save.nonce = 2;
  (void)slow.save(save);
  return violation(files, acknowledged);
}

TEST(CrashMutants, MovingHeadWithoutComparing) {
  EXPECT_TRUE(violation_after_a_race(true));
  EXPECT_EQ(violation_after_a_race(false), std::nullopt);
}

}  // namespace
}  // namespace everstep::storage
