// The job's curve: every committed update once, whoever died before it was written.
#include "launcher/job/curve.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <poll.h>

#include "launcher/job/curve_file.h"
#include "storage/json/json_reader.h"
#include "tests/temporary_directory.h"
#include "tests/trainer/checkpoints/checkpoint_parts.h"
#include "trainer/checkpoints/checkpoint_committer.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using testing::ElementsAre;
using trainer::finished_window;
using trainer::kLineage;
using trainer::MemoryStore;
using trainer::run_facts;
using trainer::ShardSaved;
using trainer::staged_cut;
using trainer::Verdict;
using trainer::writer_setup;

// Two workers that save, and committers that come and go.
class CurveTest : public testing::Test {
 protected:
  CurveTest() {
    std::filesystem::create_directories(std::filesystem::path(file()).parent_path());
    for (int rank = 0; rank < 2; ++rank) {
      writers_.push_back(std::make_unique<trainer::CheckpointWriter>(
          writer_setup(rank), store_.ports(), [this, rank](const trainer::SaveWord& word) {
            if (const auto* saved = std::get_if<ShardSaved>(&word)) committer_->take(rank, *saved);
          }));
    }
    begin({});
  }

  std::string file() const { return curve_path(directory_.path().string(), kLineage); }

  void begin(std::optional<storage::CatalogEntry> parent) {
    committer_.reset();
    trainer::RunFacts facts = run_facts();
    const auto listing = store_.catalog().list();
    facts.found = listing->newest;
    committer_ = std::make_unique<trainer::CheckpointCommitter>(facts, 2, storage::RetentionOptions{}, store_.ports(),
                                                                std::move(parent), &curve_);
  }

  // Commits the checkpoint of a version with the windows since the one before, and waits for the curve.
  void commit(std::int64_t from, std::int64_t to) {
    for (int rank = 0; rank < 2; ++rank) {
      trainer::StagedCut cut = staged_cut(rank, to, static_cast<std::uint32_t>(100 * from + to));
      for (std::int64_t window = from; rank == 0 && window < to; ++window)
        cut.history.push_back(finished_window(window));
      writers_[rank]->save(std::move(cut));
    }
    const auto is_idle = [](const auto& writer) { return writer->idle(); };
    while (!std::ranges::all_of(writers_, is_idle)) {
      pollfd entry{committer_->fd(), POLLIN, 0};
      ::poll(&entry, 1, 1);
      for (const trainer::CheckpointCommitter::News& news : committer_->take_news()) {
        if (!news.verdict) continue;
        EXPECT_EQ(news.verdict->kind, Verdict::Kind::kCommitted) << news.event;
        for (const auto& writer : writers_) writer->take(*news.verdict);
      }
    }
    committer_->finish();
  }

  void note(std::int64_t step, std::int64_t generation, double norm) {
    trainer::StepReport report;
    report.step = step;
    report.loss = static_cast<double>(step) - 0.75;
    report.gradient_norm = norm;
    curve_.note({generation}, report);
  }

  storage::CatalogEntry newest() { return store_.catalog().list()->entries.front(); }

  std::vector<Json> lines() const {
    std::vector<Json> found;
    std::ifstream text(file());
    for (std::string line; std::getline(text, line);) found.push_back(storage::parse_json(line).value());
    return found;
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const Json& line : lines()) found.push_back(*storage::JsonReader(line).integer_at("step"));
    return found;
  }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(file()).rdbuf();
    return all.str();
  }

  MemoryStore store_;
  TemporaryDirectory directory_;
  Curve curve_{directory_.path().string(), kLineage,
               [](std::int64_t step) { return 1e-3 * static_cast<double>(step); }};
  std::unique_ptr<trainer::CheckpointCommitter> committer_;
  std::vector<std::unique_ptr<trainer::CheckpointWriter>> writers_;
};

TEST_F(CurveTest, HasEachCommittedStepOnce) {
  for (std::int64_t step = 1; step <= 3; ++step) note(step, 1, 0.5);
  curve_.note_validation(2, 7.5);
  commit(0, 2);
  EXPECT_THAT(steps(), ElementsAre(1, 2)) << "what is not committed may yet be lost";
  commit(2, 3);
  EXPECT_EQ(text(),
            R"({"generation":1,"step":1,"loss":0.25,"learning_rate":0.001,"gradient_norm":0.5,"skipped":false}
{"generation":1,"step":2,"loss":1.25,"learning_rate":0.002,"gradient_norm":0.5,"skipped":false,"validation_loss":7.5}
{"generation":1,"step":3,"loss":2.25,"learning_rate":0.003,"gradient_norm":0.5,"skipped":false}
)");
}

// It was run in a generation that came to nothing, and again in another, elsewhere.
TEST_F(CurveTest, TakesNothingFromATryThatDidNotBecomeHistory) {
  note(1, 1, 0.5);
  note(2, 0, 99);
  commit(0, 2);
  EXPECT_EQ(*lines().at(0).find("gradient_norm"), Json(0.5));
  EXPECT_EQ(*lines().at(1).find("gradient_norm"), Json(nullptr));
  EXPECT_EQ(*lines().at(1).find("loss"), Json(1.25)) << "the ledger knows it";
}

TEST_F(CurveTest, IsMadeGoodByTheNextCommitterWhereOneDiedBeforeItWasWritten) {
  commit(0, 2);
  commit(2, 4);
  const std::string whole = text();
  for (const std::size_t left : {std::size_t{0}, whole.size() / 2, whole.size() - 3, whole.size() - 1}) {
    write(whole.substr(0, left));
    begin(newest());
    committer_.reset();
    EXPECT_EQ(text(), whole) << left << " bytes were left";
  }
  write(whole + "no line of a curve\n");
  begin(newest());
  committer_.reset();
  EXPECT_EQ(text(), whole);
}

TEST_F(CurveTest, IsMadeGoodByTheNextCommitAsWell) {
  commit(0, 2);
  std::filesystem::remove(file());
  commit(2, 3);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
}

TEST_F(CurveTest, GoesBackWithARunThatGoesOnFromAnOlderCheckpoint) {
  commit(0, 2);
  const storage::CatalogEntry older = newest();
  commit(2, 5);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5));
  begin(older);
  commit(2, 3);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
}

TEST_F(CurveTest, IsLeftAloneByACommitterThatWasOvertaken) {
  commit(0, 2);
  const storage::CatalogEntry older = newest();
  commit(2, 4);
  ASSERT_TRUE(curve_.follow(store_.ports(), older, nullptr));
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
}

TEST_F(CurveTest, IsWrittenByOneAtATime) {
  commit(0, 2);
  auto other = store_.files.lock(storage::lineage_directory(kLineage) + "/metrics.lock");
  ASSERT_TRUE(other) << other.error();
  commit(2, 3);
  EXPECT_THAT(steps(), ElementsAre(1, 2)) << "another one is at it";
  other->reset();
  commit(3, 4);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace everstep::launcher
