#include <set>
#include <string>
#include <vector>

#include "storage/catalog.h"
#include "storage/catalog_documents.h"
#include "storage/catalog_survey.h"
#include "storage/prune_plan.h"

namespace everstep::storage {
namespace {

// Gone already is as good as removed.
Status remove_file(FileSystem& files, const std::string& path) {
  Status removed = files.remove(path);
  if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
  return {};
}

Status remove_documents(FileSystem& files, const std::vector<std::string>& documents) {
  std::set<std::string_view> directories;
  for (const std::string& document : documents) {
    EVERSTEP_TRY(remove_file(files, document));
    directories.insert(parent_path(document));
  }
  for (const std::string_view directory : directories) EVERSTEP_TRY(files.sync_directory(directory));
  return {};
}

Status remove_empty_directories(FileSystem& files, const std::set<std::string>& directories) {
  std::set<std::string_view> parents;
  for (const std::string& directory : directories) {
    const auto rest = files.list(directory);
    if (!rest && rest.error().code == ErrorCode::kNotFound) continue;
    if (!rest) return rest.error();
    if (!rest->empty()) continue;
    EVERSTEP_TRY(files.remove_directory(directory));
    parents.insert(parent_path(directory));
  }
  for (const std::string_view parent : parents) EVERSTEP_TRY(files.sync_directory(parent));
  return {};
}

PruneReport report_of(const FileSystem& files, const PrunePlan& plan) {
  PruneReport report;
  report.removed = plan.checkpoints;
  for (const auto* paths : {&plan.records, &plan.manifests, &plan.files}) {
    for (const std::string& path : *paths) {
      const auto file = files.open(path);
      report.files += 1;
      if (file) report.bytes += (*file)->size();
    }
  }
  return report;
}

}  // namespace

Result<PruneReport> Catalog::plan_prune(const RetentionOptions& options, Generation generation) const {
  const auto survey = survey_catalog(ports_);
  if (!survey) return survey.error();
  const auto plan = make_prune_plan(ports_, *survey, options, generation, {});
  if (!plan) return plan.error();
  return report_of(ports_.files.files, *plan);
}

Result<PruneReport> Catalog::prune(const RetentionOptions& options, Generation generation,
                                   const std::vector<CheckpointName>& rejected) {
  const auto survey = survey_catalog(ports_);
  if (!survey) return survey.error();
  const auto plan = make_prune_plan(ports_, *survey, options, generation, rejected);
  if (!plan) return plan.error();
  FileSystem& files = ports_.files.files;
  PruneReport report = report_of(files, *plan);
  if (survey->stored) {
    // A HEAD whose move was never made durable may fall back to what is about to be removed.
    EVERSTEP_TRY(ports_.head.advance(survey->stored, *survey->stored));
    EVERSTEP_TRY(keep_commit_record(ports_, *survey->stored));
  }
  EVERSTEP_TRY(remove_documents(files, plan->records));
  EVERSTEP_TRY(remove_documents(files, plan->manifests));
  for (const std::string& file : plan->files) EVERSTEP_TRY(remove_file(files, file));
  EVERSTEP_TRY(remove_empty_directories(files, plan->directories));
  return report;
}

}  // namespace everstep::storage
