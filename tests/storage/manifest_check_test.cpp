#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/head.h"
#include "storage/manifest.h"
#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;

// One thing done to a manifest that was good, and what the refusal must name.
struct Mutation {
  const char* what;
  std::function<void(Manifest&)> apply;
  const char* named;
};

void expect_refused(const SampleOptions& options, const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    Manifest manifest = sample_manifest(options);
    ASSERT_TRUE(check(manifest).ok()) << check(manifest).error();
    mutation.apply(manifest);
    const Status status = check(manifest);
    ASSERT_FALSE(status.ok()) << mutation.what << " was accepted";
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument) << mutation.what;
    EXPECT_THAT(status.error().message, HasSubstr(mutation.named)) << mutation.what;
  }
}

FileRecord& file_of(Manifest& manifest, int block, StateKind kind) {
  return const_cast<FileRecord&>(*manifest.find(block, kind));  // NOLINT: the manifest is not const
}

std::vector<TensorSpec>& tensors_of(Manifest& manifest, int block, StateKind kind) {
  return file_of(manifest, block, kind).tensors;
}

const SampleOptions kFlush = {};
const SampleOptions kLive = {.live = true};
const SampleOptions kInside = {.minibatches_into_window = 2};

TEST(ManifestCheck, AcceptsEveryShapeOfCheckpoint) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    for (const char* const accumulation : {"float32", "fixed48"}) {
      for (SampleOptions options : {kFlush, kLive, kInside}) {
        options.weights = type;
        options.accumulation = accumulation;
        const Status status = check(sample_manifest(options));
        EXPECT_TRUE(status.ok()) << status.error();
      }
    }
  }
  EXPECT_TRUE(check(sample_manifest({.version = {0}})).ok());
}

TEST(ManifestCheck, RefusesWhatIsBeyondBounds) {
  expect_refused(
      kFlush,
      {
          {"an empty job", [](Manifest& m) { m.job = ""; }, "name of the job"},
          {"a path for a job", [](Manifest& m) { m.job = "../x"; }, "name of the job"},
          {"an absolute path for a job", [](Manifest& m) { m.job = "/etc"; }, "name of the job"},
          {"upper case", [](Manifest& m) { m.job = "Sample"; }, "name of the job"},
          {"a leading '-'", [](Manifest& m) { m.job = "-sample"; }, "name of the job"},
          {"a long job", [](Manifest& m) { m.job = std::string(64, 'a'); }, "name of the job"},
          {"no blocks", [](Manifest& m) { m.blocks = 0; }, "blocks"},
          {"negative blocks", [](Manifest& m) { m.blocks = -1; }, "blocks"},
          {"many blocks", [](Manifest& m) { m.blocks = 100'001; }, "blocks"},
          {"no schedule", [](Manifest& m) { m.plan.schedule = ""; }, "plan.schedule"},
          {"a binary schedule", [](Manifest& m) { m.plan.schedule = "\x01"; }, "plan.schedule"},
          {"depth 0", [](Manifest& m) { m.plan.depth = 0; }, "plan.depth"},
          {"no chunks", [](Manifest& m) { m.plan.chunks_per_device = 0; }, "plan.chunks_per_device"},
          {"width 0", [](Manifest& m) { m.plan.width = 0; }, "plan.width"},
          {"window 0", [](Manifest& m) { m.plan.window = 0; }, "plan.window"},
          {"a huge window", [](Manifest& m) { m.plan.window = std::numeric_limits<int>::max(); }, "plan.window"},
          {"a negative preload", [](Manifest& m) { m.plan.preload = -1; }, "plan.preload"},
          {"negative pipelines", [](Manifest& m) { m.plan.pipelines = -1; }, "plan.pipelines"},
          {"a lag of a schedule that has none", [](Manifest& m) { m.plan.lag = 1; }, "plan.lag"},
          {"a negative generation", [](Manifest& m) { m.name.generation = {-1}; }, "generation"},
          {"a huge version", [](Manifest& m) { m.version = {std::int64_t{1} << 62}; }, "version"},
          {"a negative version", [](Manifest& m) { m.version = {-1}; }, "version"},
          {"a negative position", [](Manifest& m) { m.name.position = {-4}; }, "position"},
          {"a nameless setting", [](Manifest& m) { m.configuration[0].first = ""; }, "configuration"},
          {"a long setting", [](Manifest& m) { m.provenance[0].second = std::string(65'537, 'x'); }, "provenance"},
          {"many settings", [](Manifest& m) { m.provenance.resize(10'001); }, "provenance"},
          {"settings in disorder", [](Manifest& m) { std::swap(m.configuration[0], m.configuration[1]); }, "model"},
          {"a setting twice", [](Manifest& m) { m.configuration[1].first = m.configuration[0].first; }, "model"},
      });
}

TEST(ManifestCheck, RefusesTimesThatDoNotFit) {
  expect_refused(kFlush,
                 {
                     {"a position before the version", [](Manifest& m) { m.name.position = {19}; }, "position"},
                     {"a position behind the window", [](Manifest& m) { m.name.position = {24}; }, "position"},
                     {"another window", [](Manifest& m) { m.plan.window = 5; }, "position"},
                     {"one update too many", [](Manifest& m) { ++m.applied; }, "applied"},
                     {"a skipped window not counted", [](Manifest& m) { m.skipped = {1}; }, "applied"},
                     {"losses of no window", [](Manifest& m) { m.window_losses = {{}}; }, "window_losses"},
                     {"a flushed window to come", [](Manifest& m) { m.flushed = {6}; }, "flushed"},
                     {"a negative flushed window",
                      [](Manifest& m) {
                        m.flushed = {-1, 2};
                      },
                      "flushed"},
                     {"flushed in disorder",
                      [](Manifest& m) {
                        m.flushed = {2, 1};
                      },
                      "flushed"},
                     {"flushed twice",
                      [](Manifest& m) {
                        m.flushed = {1, 1};
                      },
                      "flushed"},
                     {"skipped in disorder",
                      [](Manifest& m) {
                        m.skipped = {2, 1}, m.applied = 3;
                      },
                      "skipped"},
                     {"a skipped window to come", [](Manifest& m) { m.skipped = {5}, m.applied = 4; }, "skipped"},
                     {"an accumulation", [](Manifest& m) { m.accumulation = "float16"; }, "accumulation"},
                     {"cuts that end early",
                      [](Manifest& m) {
                        m.plan.cuts = {0, 1};
                      },
                      "plan.cuts"},
                     {"cuts that start late",
                      [](Manifest& m) {
                        m.plan.cuts = {1, 2};
                      },
                      "plan.cuts"},
                     {"an empty stage",
                      [](Manifest& m) {
                        m.plan.cuts = {0, 1, 1, 2};
                      },
                      "plan.cuts"},
                     {"falling cuts",
                      [](Manifest& m) {
                        m.plan.cuts = {0, 3, 2};
                      },
                      "plan.cuts"},
                     {"one cut", [](Manifest& m) { m.plan.cuts = {0}; }, "plan.cuts"},
                     {"no cuts", [](Manifest& m) { m.plan.cuts = {}; }, "plan.cuts"},
                 });
  expect_refused(kInside,
                 {
                     {"a loss missing", [](Manifest& m) { m.window_losses.pop_back(); }, "window_losses"},
                     {"a loss twice", [](Manifest& m) { m.window_losses[1].minibatch = 0; }, "window_losses"},
                     {"a loss more", [](Manifest& m) { m.window_losses.push_back({.minibatch = 2}); }, "window_losses"},
                 });
}

TEST(ManifestCheck, RefusesFilesThatAreMissingOrTooMany) {
  expect_refused(kFlush,
                 {
                     {"no files", [](Manifest& m) { m.files.clear(); }, "block 0, weights"},
                     {"the last missing", [](Manifest& m) { m.files.pop_back(); }, "block 1, optimizer"},
                     {"weights missing", [](Manifest& m) { m.files.erase(m.files.begin() + 2); }, "block 1, weights"},
                     {"a block twice", [](Manifest& m) { m.files.insert(m.files.begin(), m.files[0]); }, "block 0"},
                     {"a block in place of another", [](Manifest& m) { m.files[2] = m.files[0]; }, "block 1, weights"},
                     {"a block too many", [](Manifest& m) { m.files.push_back(m.files.back()); }, "one file too many"},
                     {"a negative block", [](Manifest& m) { m.files[0].block = -1; }, "block 0, weights"},
                     {"disorder", [](Manifest& m) { std::swap(m.files[0], m.files[1]); }, "block 0, weights"},
                     {"previous of one block only",
                      [](Manifest& m) {
                        m.files.insert(m.files.begin() + 1, m.files[0]);
                        m.files[1].kind = StateKind::kPrevious;
                        m.files[1].version = {4};
                      },
                      "block 1, previous"},
                     {"gradients at a window's start", [](Manifest& m) { m.files[1].kind = StateKind::kGradients; },
                      "block 0, optimizer"},
                 });
  expect_refused(kLive, {{"previous and gradients",
                          [](Manifest& m) {
                            m.name.position = {21};
                            m.window_losses = {{}};
                          },
                          "previous weights inside a window"}});
  expect_refused(kInside,
                 {{"no gradients", [](Manifest& m) { m.files.erase(m.files.begin() + 2); }, "block 0, gradients"}});
}

TEST(ManifestCheck, RefusesFilesOfAnotherTime) {
  const auto other = [](std::int64_t generation, std::int64_t position) {
    return CheckpointName{.generation = {generation}, .position = {position}, .nonce = 1};
  };
  expect_refused(
      kFlush,
      {
          {"an old version", [](Manifest& m) { m.files[0].version = {4}; }, "version 4"},
          {"a version to come", [](Manifest& m) { m.files[3].version = {6}; }, "block 1, optimizer"},
          {"a writer to come", [&](Manifest& m) { m.files[0].written_by = other(3, 21); }, "g3-p21"},
          {"a writer of an older version", [&](Manifest& m) { m.files[0].written_by = other(3, 19); }, "g3-p19"},
          {"a writer of a newer generation", [&](Manifest& m) { m.files[0].written_by = other(4, 20); }, "g4-p20"},
          {"two other writers",
           [&](Manifest& m) {
             m.files[0].written_by = other(3, 20);
             m.files[1].written_by = other(2, 20);
           },
           "g2-p20"},
      });
  expect_refused(kLive,
                 {{"the same version twice", [](Manifest& m) { file_of(m, 0, StateKind::kPrevious).version = {5}; },
                   "block 0, previous"}});
  expect_refused(kInside, {{"gradients of an earlier cut",
                            [&](Manifest& m) { file_of(m, 1, StateKind::kGradients).written_by = other(3, 21); },
                            "block 1, gradients"}});
}

TEST(ManifestCheck, AcceptsFilesOfTheCheckpointDirectlyBefore) {
  Manifest manifest = sample_manifest(kInside);
  for (FileRecord& file : manifest.files) {
    if (file.kind == StateKind::kGradients) continue;
    file.written_by = {.generation = {2}, .position = {20}, .nonce = 1};
  }
  const Status status = check(manifest);
  EXPECT_TRUE(status.ok()) << status.error();
}

TEST(ManifestCheck, RefusesTensorsThatDifferBetweenKinds) {
  using enum StateKind;
  expect_refused(
      kFlush,
      {
          {"no tensors", [](Manifest& m) { m.files[0].tensors.clear(); }, "block 0, weights"},
          {"many tensors", [](Manifest& m) { m.files[0].tensors.resize(10'001); }, "block 0, weights"},
          {"a tensor twice", [](Manifest& m) { m.files[0].tensors[1] = m.files[0].tensors[0]; }, "h.0.weight"},
          {"a shape beyond bounds",
           [](Manifest& m) {
             m.files[0].tensors[0].shape = {1 << 30, 1 << 30};
           },
           "h.0.weight"},
          {"a negative size", [](Manifest& m) { m.files[0].tensors[0].shape = {-1}; }, "h.0.weight"},
          {"a file too small", [](Manifest& m) { --m.files[0].size; }, "block 0, weights"},
          {"a file beyond bounds", [](Manifest& m) { m.files[0].size = std::uint64_t{1} << 63; }, "block 0, weights"},
          {"weights in a group", [](Manifest& m) { m.files[0].tensors[0].name = "a/b"; }, "a/b"},
          {"integers for weights",
           [](Manifest& m) { tensors_of(m, 0, kWeights)[1].type = ElementType::kInt64, m.files[0].size = 1000; },
           "h.0.bias"},
          {"a moment missing", [](Manifest& m) { tensors_of(m, 1, kOptimizer).pop_back(); }, "second_moment/h.1.bias"},
          {"a moment of another name", [](Manifest& m) { tensors_of(m, 0, kOptimizer)[0].name = "first_moment/x"; },
           "first_moment/h.0.weight"},
          {"a moment of no weight",
           [](Manifest& m) {
             tensors_of(m, 0, kOptimizer).push_back({.name = "third_moment/x", .shape = {1}});
             file_of(m, 0, kOptimizer).size += 4;
           },
           "third_moment/x"},
          {"a moment of another shape",
           [](Manifest& m) {
             tensors_of(m, 0, kOptimizer)[0].shape = {3, 2};
           },
           "first_moment/h.0.weight"},
          {"a moment of another type",
           [](Manifest& m) { tensors_of(m, 0, kOptimizer)[0].type = ElementType::kBfloat16; },
           "first_moment/h.0.weight"},
      });
  expect_refused(
      kLive, {{"another shape before",
               [](Manifest& m) { tensors_of(m, 0, kPrevious)[1].shape = {2}, file_of(m, 0, kPrevious).size = 1000; },
               "h.0.bias"}});
  SampleOptions bfloat16 = kFlush;
  bfloat16.weights = ElementType::kBfloat16;
  expect_refused(
      bfloat16,
      {{"no master", [](Manifest& m) { tensors_of(m, 0, kOptimizer).erase(tensors_of(m, 0, kOptimizer).begin() + 2); },
        "master/h.0.weight"}});
  SampleOptions fixed = kInside;
  fixed.accumulation = "fixed48";
  expect_refused(fixed,
                 {{"floats for integers", [](Manifest& m) { m.accumulation = "float32"; }, "block 0, gradients"},
                  {"half of it", [](Manifest& m) { tensors_of(m, 1, kGradients)[0].type = ElementType::kFloat32; },
                   "h.1.weight"}});
}

TEST(HeadCheck, RefusesWhatNoWriterMakes) {
  const Head good = sample_head(sample_manifest(), {});
  EXPECT_TRUE(check(good).ok());
  const auto refusal = [&](const std::function<void(Head&)>& mutate) {
    Head head = good;
    mutate(head);
    const Status status = check(head);
    return status.ok() ? "accepted" : status.error().message;
  };
  EXPECT_THAT(refusal([](Head& h) { h.sequence = 0; }), HasSubstr("sequence"));
  EXPECT_THAT(refusal([](Head& h) { h.job = ".."; }), HasSubstr("job"));
  EXPECT_THAT(refusal([](Head& h) { h.checkpoint.position = {-1}; }), HasSubstr("position"));
  EXPECT_THAT(refusal([](Head& h) { h.checkpoint.generation = {-1}; }), HasSubstr("generation"));
  EXPECT_THAT(refusal([](Head& h) { h.previous = Digest{}; }), HasSubstr("previous"));
}

}  // namespace
}  // namespace everstep::storage
