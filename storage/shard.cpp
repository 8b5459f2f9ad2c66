#include "storage/shard.h"

#include <algorithm>

#include "storage/bounds.h"

namespace everstep::storage {
namespace {

Status check_order(const Shard& shard) {
  const auto not_before = [](const auto& before) {
    return [before](const auto& a, const auto& b) { return !before(a, b); };
  };
  if (std::adjacent_find(shard.files.begin(), shard.files.end(), not_before(comes_before)) != shard.files.end()) {
    return invalid_argument("the files of a shard are not in the order of their blocks and kinds");
  }
  const auto loss_before = [](const StoredLoss& a, const StoredLoss& b) { return a.minibatch < b.minibatch; };
  const auto& losses = shard.window_losses;
  if (std::adjacent_find(losses.begin(), losses.end(), not_before(loss_before)) != losses.end()) {
    return invalid_argument("the losses of a shard are not in the order of their minibatches");
  }
  return {};
}

}  // namespace

Status check(const Shard& shard) {
  EVERSTEP_TRY(check_job_name(shard.job));
  EVERSTEP_TRY(check_bounds(shard.name));
  EVERSTEP_TRY(check_range("version", shard.version.value, 0, kMostVersions));
  EVERSTEP_TRY(check_range("applied", shard.applied, 0, shard.version.value));
  EVERSTEP_TRY(check_clip_scale(shard.clip_scale));
  for (const FileRecord& file : shard.files) {
    EVERSTEP_TRY(check_range("block", file.block, 0, kMostBlocks - 1));
    EVERSTEP_TRY(check_bounds(file.written_by));
  }
  for (const StoredLoss& loss : shard.window_losses) {
    EVERSTEP_TRY(check_range("minibatch", loss.minibatch, 0, kLargestWindow - 1));
  }
  return check_order(shard);
}

std::string shard_path(std::uint64_t lineage, const CheckpointName& name, const WriterTag& writer) {
  return directory_of(lineage, name) + "/shard-" + to_string(writer) + ".json";
}

}  // namespace everstep::storage
