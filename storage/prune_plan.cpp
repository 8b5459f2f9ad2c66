#include "storage/prune_plan.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "storage/catalog_documents.h"

namespace everstep::storage {
namespace {

// A checkpoint that was committed, good or not.
struct Candidate {
  std::string directory;
  RetentionCandidate facts;
  std::optional<Manifest> manifest;  // nothing: damaged
  std::optional<Error> error;
};

bool is_record(std::string_view name) {
  const std::string record = commit_record_path(0, {});
  return name.starts_with(base_name(record));  // or its temporary
}

bool is_manifest(std::string_view name) { return name.starts_with("manifest-") && name.ends_with(".json"); }

bool is_other_file(std::string_view name) {
  return name.ends_with(".h5") || name == kPinName || (name.starts_with("shard-") && name.ends_with(".json"));
}

const CheckpointTrace* find_trace(const JobDirectory& directory, const std::string& path) {
  const auto found = std::find_if(directory.traces.begin(), directory.traces.end(),
                                  [&](const CheckpointTrace& trace) { return trace.directory == path; });
  return found == directory.traces.end() ? nullptr : &*found;
}

bool is_pinned(const JobDirectory& directory, const std::string& path) {
  const CheckpointTrace* trace = find_trace(directory, path);
  return trace != nullptr && trace->has(kPinName);
}

std::int64_t sequence_of_parent(const CatalogSurvey& survey, const Head& child) {
  const auto found = std::find_if(survey.committed.begin(), survey.committed.end(),
                                  [&](const Head& head) { return child.parent == head.manifest; });
  return found == survey.committed.end() ? 0 : found->sequence;
}

void add_committed(const CatalogPorts& ports, const CatalogSurvey& survey, const std::vector<CheckpointName>& rejected,
                   std::vector<Candidate>& candidates) {
  for (const Head& head : survey.committed) {
    Candidate candidate{directory_of(head.lineage, head.checkpoint), {}, {}, {}};
    candidate.facts.sequence = head.sequence;
    candidate.facts.parent = sequence_of_parent(survey, head);
    candidate.facts.name = head.checkpoint;
    candidate.facts.damaged = std::find(rejected.begin(), rejected.end(), head.checkpoint) != rejected.end();
    candidate.facts.pinned = is_pinned(survey.directory, candidate.directory);
    auto manifest = read_manifest(ports, head);
    if (manifest) {
      candidate.facts.version = manifest->version;
      candidate.facts.validation_loss = manifest->validation_loss;
      candidate.manifest = std::move(*manifest);
    } else {
      candidate.error = manifest.error();
    }
    candidates.push_back(std::move(candidate));
  }
}

// Those whose commit record is damaged: their place in the sequence is told by their name.
void add_damaged(const CatalogSurvey& survey, std::vector<Candidate>& candidates) {
  const std::size_t committed = candidates.size();
  for (const Damage& damage : survey.damaged) {
    if (!damage.name) continue;
    const auto known = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return candidate.directory == damage.checkpoint;
    });
    if (known != candidates.end()) continue;  // HEAD's: HEAD says what its record would
    Candidate candidate{damage.checkpoint, {}, {}, damage.error};
    candidate.facts.name = *damage.name;
    candidate.facts.pinned = is_pinned(survey.directory, damage.checkpoint);
    for (std::size_t i = 0; i < committed; ++i) {
      if (!is_older(damage, survey.committed[i])) {
        candidate.facts.sequence = std::max(candidate.facts.sequence, candidates[i].facts.sequence);
      }
    }
    candidates.push_back(std::move(candidate));
  }
}

// A damaged manifest does not tell its version, but a window is as long as ever.
void estimate_versions(std::vector<Candidate>& candidates) {
  const auto good = std::find_if(candidates.begin(), candidates.end(),
                                 [](const Candidate& candidate) { return candidate.manifest.has_value(); });
  if (good == candidates.end()) return;
  const int window = good->manifest->plan.window;
  for (Candidate& candidate : candidates) {
    if (!candidate.manifest) candidate.facts.version = {candidate.facts.name.position.value / window};
  }
}

Status refuse_recent_damage(const std::vector<Candidate>& candidates, const RetentionOptions& options) {
  for (const Candidate& candidate : candidates) {
    if (candidate.manifest) continue;
    if (candidate.error->code == ErrorCode::kInvalidArgument) return *candidate.error;  // whole, but of a newer format
    const auto newer = std::count_if(candidates.begin(), candidates.end(), [&](const Candidate& other) {
      return other.manifest && !other.facts.damaged && other.facts.sequence > candidate.facts.sequence;
    });
    if (newer >= options.keep_last) continue;
    return data_loss("nothing is removed while " + candidate.directory + ", one of the last " +
                         std::to_string(options.keep_last) + " checkpoints, is damaged: " + candidate.error->message,
                     "restore it from a copy, or go on: newer checkpoints will take its place");
  }
  return {};
}

class Planner {
 public:
  Planner(const CatalogSurvey& survey, std::set<std::string> kept) : survey_(survey), kept_files_(std::move(kept)) {}

  void remove_checkpoint(const Candidate& candidate) {
    plan_.checkpoints.push_back(candidate.directory);
    remove_directory(candidate.directory);
    if (!candidate.manifest) return;
    // Files of the checkpoint before it, whose own documents may be long gone.
    for (const FileRecord& file : candidate.manifest->files) {
      const std::string path = path_of(candidate.manifest->lineage, file);
      const CheckpointTrace* trace = find_trace(survey_.directory, std::string(parent_path(path)));
      if (trace != nullptr && trace->directory != candidate.directory && trace->has(base_name(path))) {
        remove_file(*trace, base_name(path));
      }
    }
  }

  void remove_directory(const std::string& directory) {
    const CheckpointTrace* trace = find_trace(survey_.directory, directory);
    if (trace == nullptr) return;
    plan_.directories.insert(directory);
    for (const std::string& name : trace->files) {
      if (!check_path(name)) continue;
      if (is_record(name)) plan_.records.push_back(join_path(directory, name));
      if (is_manifest(name)) plan_.manifests.push_back(join_path(directory, name));
      if (is_other_file(name)) remove_file(*trace, name);
    }
  }

  void remove_head_temporaries(Generation generation) {
    for (const std::string& name : survey_.directory.files) {
      const auto of = generation_of_head_temporary(name);
      if (of && *of < generation && check_path(name)) plan_.files.push_back(name);
    }
  }

  PrunePlan plan() && {
    std::sort(plan_.files.begin(), plan_.files.end());
    plan_.files.erase(std::unique(plan_.files.begin(), plan_.files.end()), plan_.files.end());
    return std::move(plan_);
  }

 private:
  void remove_file(const CheckpointTrace& trace, std::string_view name) {
    std::string path = join_path(trace.directory, name);
    if (kept_files_.contains(path)) return;
    plan_.directories.insert(trace.directory);
    plan_.files.push_back(std::move(path));
  }

  const CatalogSurvey& survey_;
  std::set<std::string> kept_files_;
  PrunePlan plan_;
};

std::set<std::string> files_of(const std::vector<Candidate>& candidates, const std::vector<std::size_t>& indices) {
  std::set<std::string> files;
  for (const std::size_t index : indices) {
    const auto& manifest = candidates[index].manifest;
    if (!manifest) continue;
    for (const FileRecord& file : manifest->files) files.insert(path_of(manifest->lineage, file));
  }
  return files;
}

}  // namespace

Result<PrunePlan> make_prune_plan(const CatalogPorts& ports, const CatalogSurvey& survey,
                                  const RetentionOptions& options, Generation generation,
                                  const std::vector<CheckpointName>& rejected) {
  if (options.keep_last < 2) {
    return invalid_argument("retention keeps the last 2 checkpoints at least: one may turn out to be damaged");
  }
  if (survey.head_error) {
    return data_loss("nothing is removed while HEAD cannot be trusted: " + survey.head_error->message,
                     "resume the job: its next checkpoint replaces HEAD");
  }
  std::vector<Candidate> candidates;
  add_committed(ports, survey, rejected, candidates);
  add_damaged(survey, candidates);
  estimate_versions(candidates);
  EVERSTEP_TRY(refuse_recent_damage(candidates, options));

  std::vector<RetentionCandidate> facts;
  std::set<std::string> committed;
  for (const Candidate& candidate : candidates) {
    facts.push_back(candidate.facts);
    committed.insert(candidate.directory);
  }
  const std::vector<std::size_t> kept = checkpoints_to_keep(facts, options);
  Planner planner(survey, files_of(candidates, kept));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!std::binary_search(kept.begin(), kept.end(), i)) planner.remove_checkpoint(candidates[i]);
  }
  for (const CheckpointTrace& trace : survey.directory.traces) {
    const bool orphan = !committed.contains(trace.directory);
    if (orphan && trace.name.generation < generation) planner.remove_directory(trace.directory);
  }
  planner.remove_head_temporaries(generation);
  return std::move(planner).plan();
}

}  // namespace everstep::storage
