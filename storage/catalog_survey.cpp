#include "storage/catalog_survey.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "storage/catalog_documents.h"

namespace everstep::storage {
namespace {

constexpr std::string_view kHeadTemporaryStart = "HEAD.g";
constexpr std::string_view kHeadTemporaryEnd = ".tmp";

bool is_lineage(std::string_view name) { return name.size() == 8 && from_hex(name).has_value(); }

auto age(const CheckpointName& name) { return std::tuple(name.generation, name.position, name.nonce); }

Status scan_lineage(const FileSystem& files, const std::string& lineage, std::vector<CheckpointTrace>& traces) {
  const auto entries = files.list(lineage);
  if (!entries) return entries.error();
  for (const DirectoryEntry& entry : *entries) {
    const auto name = parse_checkpoint_name(entry.name);
    if (!entry.is_directory || !name) continue;
    CheckpointTrace trace{join_path(lineage, entry.name), *name, {}};
    const auto contents = files.list(trace.directory);
    if (!contents && contents.error().code == ErrorCode::kNotFound) continue;  // removed meanwhile
    if (!contents) return contents.error();
    for (const DirectoryEntry& file : *contents) {
      if (!file.is_directory) trace.files.push_back(file.name);
    }
    traces.push_back(std::move(trace));
  }
  return {};
}

Result<Head> read_record(const CatalogPorts& ports, const CheckpointTrace& trace, const std::string& path) {
  auto record = read_head(ports.files.files, ports.documents, ports.seal, path);
  if (!record) return record.error().code == ErrorCode::kNotFound ? as_damage(record.error()) : record.error();
  if (commit_record_path(record->lineage, record->checkpoint) != path) {
    return data_loss("the commit record in '" + trace.directory + "' is that of another checkpoint");
  }
  return record;
}

std::vector<Head> read_records(const CatalogPorts& ports, CatalogSurvey& survey) {
  std::vector<Head> records;
  const std::string name(base_name(commit_record_path(0, {})));
  for (const CheckpointTrace& trace : survey.directory.traces) {
    if (!trace.has(name)) continue;
    auto record = read_record(ports, trace, join_path(trace.directory, name));
    if (record) {
      records.push_back(std::move(*record));
    } else {
      survey.damaged.push_back({trace.directory, record.error(), trace.name, std::nullopt});
    }
  }
  return records;
}

std::optional<Error> distrust(const std::optional<Head>& head, const std::vector<Head>& committed) {
  if (committed.empty()) return std::nullopt;
  const Head& newest = committed.front();
  const std::string newest_text = to_string(newest.checkpoint);
  if (!head) return data_loss("HEAD is missing, but " + newest_text + " was committed");
  if (*head == newest) return std::nullopt;
  return data_loss("HEAD is out of date: it names " + to_string(head->checkpoint) + ", but " + newest_text +
                   " was committed later");
}

}  // namespace

std::string head_temporary_name(const Head& next) {
  return std::string(kHeadTemporaryStart) + std::to_string(next.checkpoint.generation.value) + "." +
         to_string(next.writer) + std::string(kHeadTemporaryEnd);
}

std::optional<Generation> generation_of_head_temporary(std::string_view name) {
  if (!name.starts_with(kHeadTemporaryStart) || !name.ends_with(kHeadTemporaryEnd)) return std::nullopt;
  name.remove_prefix(kHeadTemporaryStart.size());
  const auto number = parse_number<std::int64_t>(name.substr(0, name.find('.')));
  if (!number || *number < 0) return std::nullopt;
  return Generation{*number};
}

bool CheckpointTrace::has(std::string_view file) const { return std::binary_search(files.begin(), files.end(), file); }

Result<JobDirectory> scan_job_directory(const FileSystem& files) {
  JobDirectory directory;
  const auto entries = files.list("");
  if (!entries && entries.error().code == ErrorCode::kNotFound) return directory;
  if (!entries) return entries.error();
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory) {
      directory.files.push_back(entry.name);
    } else if (is_lineage(entry.name)) {
      EVERSTEP_TRY(scan_lineage(files, entry.name, directory.traces));
    }
  }
  return directory;
}

std::vector<Head> committed_heads(const std::optional<Head>& head, std::vector<Head> records) {
  if (head) records.push_back(*head);
  std::stable_sort(records.begin(), records.end(), [&](const Head& a, const Head& b) {
    return std::tuple(a.sequence, head && a == *head, age(a.checkpoint)) >
           std::tuple(b.sequence, head && b == *head, age(b.checkpoint));
  });
  std::vector<Head> committed;
  for (Head& record : records) {
    if (!committed.empty()) {
      const Head& next = committed.back();
      if (record.sequence == next.sequence) continue;
      if (record.sequence + 1 == next.sequence && record.manifest != next.previous) continue;
    }
    committed.push_back(std::move(record));
  }
  return committed;
}

Result<CatalogSurvey> survey_catalog(const CatalogPorts& ports) {
  auto directory = scan_job_directory(ports.files.files);
  if (!directory) return directory.error();
  CatalogSurvey survey;
  survey.directory = std::move(*directory);
  survey.records = read_records(ports, survey);
  const auto head = ports.head.read();
  if (head) {
    survey.stored = *head;
  } else {
    survey.head_error = head.error();
  }
  survey.committed = committed_heads(survey.stored, survey.records);
  if (survey.stored) survey.records.push_back(*survey.stored);
  if (head) survey.head_error = distrust(survey.stored, survey.committed);
  if (survey.head_error) {
    survey.damaged.insert(survey.damaged.begin(), {kHeadName, *survey.head_error, std::nullopt, std::nullopt});
  }
  return survey;
}

bool is_older(const Damage& damage, const Head& than) {
  if (damage.sequence) return *damage.sequence < than.sequence;
  return damage.name && age(*damage.name) < age(than.checkpoint);
}

}  // namespace everstep::storage
