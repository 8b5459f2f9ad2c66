#include "storage/reshard.h"

#include <map>
#include <set>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;
using Key = std::tuple<int, StateKind, std::string>;

// The oracle: everything that the checkpoint holds, copied, by block and global name.
std::map<Key, Bytes> copy_everything(const Manifest& manifest) {
  std::map<Key, Bytes> state;
  for (const FileRecord& file : manifest.files) {
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      state[{file.block, file.kind, file.tensors[i].name}] = sample_bytes(file, i);
    }
  }
  return state;
}

// What reading the fetches gives, per wanted tensor; empty where nothing came.
std::vector<Bytes> read_fetches(const std::vector<FileFetch>& fetches, std::size_t wanted) {
  std::vector<Bytes> got(wanted);
  for (const FileFetch& fetch : fetches) {
    for (const FileFetch::Part& part : fetch.parts) {
      got.at(static_cast<std::size_t>(part.wanted)) = sample_bytes(fetch.file, static_cast<std::size_t>(part.tensor));
    }
  }
  return got;
}

// The state of a stage under another plan: cut anywhere, each file wanted by up to two replicas.
std::vector<WantedTensor> want_under_random_plan(const Manifest& manifest) {
  std::vector<WantedTensor> wanted;
  const int first_block = *rc::gen::inRange(0, manifest.blocks);
  const int end_block = *rc::gen::inRange(first_block + 1, manifest.blocks + 1);
  for (const FileRecord& file : manifest.files) {
    if (file.block < first_block || file.block >= end_block) continue;
    const int replicas = *rc::gen::inRange(0, 3);
    for (int replica = 0; replica < replicas; ++replica) {
      for (const TensorSpec& tensor : file.tensors) {
        wanted.push_back({.block = file.block, .kind = file.kind, .tensor = tensor});
      }
    }
  }
  for (std::size_t i = wanted.size(); i > 1; --i)
    std::swap(wanted[i - 1], wanted[*rc::gen::inRange<std::size_t>(0, i)]);
  return wanted;
}

TEST(Reshard, GivesWhatAnOracleThatCopiesEverythingGives) {
  EXPECT_TRUE(rc::check([] {
    SampleOptions options;
    options.blocks = *rc::gen::inRange(1, 9);
    options.live = *rc::gen::arbitrary<bool>();
    options.minibatches_into_window = options.live ? 0 : *rc::gen::inRange(0, options.window);
    options.weights = *rc::gen::element(ElementType::kFloat32, ElementType::kBfloat16);
    const Manifest manifest = sample_manifest(options);
    const std::map<Key, Bytes> state = copy_everything(manifest);
    const std::vector<WantedTensor> wanted = want_under_random_plan(manifest);

    const auto fetches = reshard(manifest, wanted);
    if (!fetches) RC_FAIL(fetches.error().line());
    const std::vector<Bytes> got = read_fetches(*fetches, wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      RC_ASSERT(got[i] == state.at({wanted[i].block, wanted[i].kind, wanted[i].tensor.name}));
    }
  }));
}

TEST(Reshard, NamesEachFileOnceAndItsPartsInFileOrder) {
  EXPECT_TRUE(rc::check([] {
    const Manifest manifest = sample_manifest({.blocks = *rc::gen::inRange(1, 9), .live = true});
    const std::vector<WantedTensor> wanted = want_under_random_plan(manifest);
    std::set<std::string> paths;
    std::size_t parts = 0;
    const auto fetches = reshard(manifest, wanted);
    for (const FileFetch& fetch : fetches.value()) {
      RC_ASSERT(paths.insert(path_of(manifest.lineage, fetch.file)).second);
      RC_ASSERT(!fetch.parts.empty());
      for (std::size_t i = 1; i < fetch.parts.size(); ++i) {
        RC_ASSERT(fetch.parts[i - 1].tensor <= fetch.parts[i].tensor);
      }
      parts += fetch.parts.size();
    }
    RC_ASSERT(parts == wanted.size());
  }));
}

TEST(Reshard, ReadsNothingWhenNothingIsWanted) { EXPECT_TRUE(reshard(sample_manifest(), {}).value().empty()); }

TEST(Reshard, NamesTheTensorThatTheCheckpointDoesNotHave) {
  const Manifest manifest = sample_manifest();
  const WantedTensor good{.block = 1, .kind = StateKind::kWeights, .tensor = manifest.files[2].tensors[0]};
  const auto refusal = [&](const WantedTensor& bad) {
    const auto fetches = reshard(manifest, {good, bad});
    if (fetches.ok()) return std::string("accepted");
    EXPECT_EQ(fetches.error().code, ErrorCode::kInvalidArgument);
    return fetches.error().message;
  };
  EXPECT_EQ(refusal(good), "accepted");
  WantedTensor bad = good;
  bad.tensor.name = "h.7.weight";
  EXPECT_EQ(refusal(bad), "tensor 'h.7.weight', weights of block 1: the checkpoint has no tensor of this name");
  bad = good;
  bad.tensor.shape = {3, 4};
  EXPECT_EQ(refusal(bad),
            "tensor 'h.1.weight', weights of block 1: the checkpoint has float32 [3, 3], wanted is float32 [3, 4]");
  bad = good;
  bad.tensor.type = ElementType::kBfloat16;
  EXPECT_THAT(refusal(bad), HasSubstr("wanted is bfloat16 [3, 3]"));
  bad = good;
  bad.kind = StateKind::kGradients;
  EXPECT_EQ(refusal(bad), "tensor 'h.1.weight', gradients of block 1: the checkpoint has no such file");
  bad = good;
  bad.block = 2;
  EXPECT_THAT(refusal(bad), HasSubstr("weights of block 2: the checkpoint has no such file"));
}

}  // namespace
}  // namespace everstep::storage
