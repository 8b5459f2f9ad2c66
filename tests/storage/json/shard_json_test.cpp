#include <limits>
#include <memory>

#include <gmock/gmock.h>

#include "storage/json/document_json.h"
#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;

Shard sample_shard() {
  const Manifest manifest = sample_manifest({.minibatches_into_window = 2});
  Shard shard;
  shard.job = manifest.job;
  shard.lineage = manifest.lineage;
  shard.name = manifest.name;
  shard.version = manifest.version;
  shard.applied = manifest.applied;
  shard.files = manifest.files;
  shard.window_losses = {{1, 0.1}, {3, std::numeric_limits<double>::infinity()}};
  shard.history = sample_ledger(manifest).entries;
  return shard;
}

std::string refused_shard(const Shard& shard) {
  const auto documents = make_json_documents();
  const auto parsed = documents->parse_shard(documents->encode(shard));
  return parsed ? "" : parsed.error().message;
}

TEST(ShardDocument, ComesBackAsItWas) {
  const auto documents = make_json_documents();
  const Shard shard = sample_shard();
  const auto back = documents->parse_shard(documents->encode(shard));
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(*back, shard);
  Shard idle;  // of a worker that owns nothing
  idle.job = "job";
  EXPECT_EQ(*documents->parse_shard(documents->encode(idle)), idle);
}

TEST(ShardDocument, IsNoManifestAndNoManifestIsOne) {
  const auto documents = make_json_documents();
  EXPECT_FALSE(documents->parse_manifest(documents->encode(sample_shard())).ok());
  EXPECT_FALSE(documents->parse_shard(documents->encode(sample_manifest())).ok());
  EXPECT_FALSE(documents->parse_shard("{}").ok());
}

TEST(ShardDocument, RefusesWhatNoWriterMakes) {
  Shard shard = sample_shard();
  std::swap(shard.files[0], shard.files[1]);
  EXPECT_THAT(refused_shard(shard), HasSubstr("order of their blocks"));
  shard = sample_shard();
  shard.files[1] = shard.files[0];
  EXPECT_THAT(refused_shard(shard), HasSubstr("order of their blocks"));
  shard = sample_shard();
  shard.window_losses = {{1, 0}, {1, 0}};
  EXPECT_THAT(refused_shard(shard), HasSubstr("order of their minibatches"));
  shard = sample_shard();
  shard.job = "../job";
  EXPECT_NE(refused_shard(shard), "");
  shard = sample_shard();
  shard.applied = shard.version.value + 1;
  EXPECT_THAT(refused_shard(shard), HasSubstr("applied"));
}

TEST(ShardDocument, LiesBesideTheFilesItNames) {
  EXPECT_EQ(shard_path(0x0123456789abcdef, {{3}, {1600}, 0x9f3a11c2}, {0x1f2e3d4c, 0x9a8b7c6d}),
            "01234567/g3-p1600-9f3a11c2/shard-1f2e3d4c-9a8b7c6d.json");
}

}  // namespace
}  // namespace everstep::storage
