#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/catalog.h"

// What is in a job's directory, before any manifest is read.
namespace everstep::storage {

inline constexpr const char* kHeadName = "HEAD";
inline constexpr const char* kLockName = "LOCK";
inline constexpr const char* kPinName = "pinned";

// "HEAD.g3.<inc8>-<rand8>.tmp": another name for every writer and generation. And the generation of such a name.
std::string head_temporary_name(const Head& next);
std::optional<Generation> generation_of_head_temporary(std::string_view name);

// A directory that a save made, committed or not.
struct CheckpointTrace {
  std::string directory;
  CheckpointName name;
  std::vector<std::string> files;  // ascending

  bool has(std::string_view file) const;
};

// All of them, and what else lies in the job's directory itself. A directory that does not exist is empty.
struct JobDirectory {
  std::vector<CheckpointTrace> traces;
  std::vector<std::string> files;
};

Result<JobDirectory> scan_job_directory(const FileSystem& files);

// Which of the HEADs that are on record were committed, newest first: HEAD itself and what its chain of `previous`
// leads to. Where the chain has a gap (a checkpoint was removed), the next lower sequence goes on; of two with one
// sequence the later writer's.
std::vector<Head> committed_heads(const std::optional<Head>& head, std::vector<Head> records);

struct CatalogSurvey {
  JobDirectory directory;
  std::optional<Head> stored;       // HEAD as it is
  std::optional<Error> head_error;  // why HEAD cannot be trusted
  std::vector<Head> records;        // HEAD and all commit records that can be trusted, in no order, perhaps twice
  std::vector<Head> committed;      // newest first; its first one is HEAD or what stands in for it
  std::vector<Damage> damaged;      // HEAD, commit records
};

// Fails only if the directory cannot be read. HEAD is read last, so that a commit meanwhile does not make it look old.
Result<CatalogSurvey> survey_catalog(const CatalogPorts& ports);

// Whether the damage is older than this checkpoint; HEAD's never is.
bool is_older(const Damage& damage, const Head& than);

}  // namespace everstep::storage
