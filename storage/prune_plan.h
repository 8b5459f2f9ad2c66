#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/catalog.h"
#include "storage/catalog_survey.h"

namespace everstep::storage {

// What a prune removes, in this order, each list durably before the next: without its commit record a checkpoint is
// none any more, and nobody looks for its files.
struct PrunePlan {
  std::vector<std::string> checkpoints;  // directories, for the report
  std::vector<std::string> records;
  std::vector<std::string> manifests;
  std::vector<std::string> files;
  std::set<std::string> directories;  // if they are empty then
};

// Reads all manifests. Refuses as Catalog::prune says.
Result<PrunePlan> make_prune_plan(const CatalogPorts& ports, const CatalogSurvey& survey,
                                  const RetentionOptions& options, Generation generation,
                                  const std::vector<CheckpointName>& rejected);

}  // namespace everstep::storage
