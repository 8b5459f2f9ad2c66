#include "launcher/proof/audit.h"

#include <algorithm>
#include <set>

#include "launcher/checkpoint/verification.h"
#include "launcher/job/stored_model.h"
#include "storage/catalog_survey.h"
#include "storage/reshard.h"
#include "trainer/checkpoints/state_tensors.h"
#include "trainer/update/sums.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::Manifest;
using storage::StateKind;

// Buffers for every kind of state that the checkpoint has of a block.
trainer::StageState room_for(const Manifest& manifest, const trainer::ModelConfig& model, std::int64_t elements,
                             trainer::Accumulation accumulation) {
  const auto room = [&](std::size_t bytes) {
    return trainer::allocate_scratch(static_cast<std::size_t>(elements) * bytes);
  };
  trainer::StageState state;
  state.weights = room(model.weight_bytes());
  state.first_moment = room(sizeof(float));
  state.second_moment = room(sizeof(float));
  if (model.precision == trainer::Precision::kBf16) state.master = room(sizeof(float));
  if (manifest.has(StateKind::kPrevious)) state.previous = room(model.weight_bytes());
  if (manifest.has(StateKind::kProvisional)) state.provisional = room(model.weight_bytes());
  if (manifest.minibatches_into_window() > 0) state.gradients = room(sum_bytes(accumulation));
  return state;
}

// Whether a worker that holds any one block would find all it needs.
Status check_blocks(const Manifest& manifest) {
  const auto model = stored_model(manifest.configuration);
  if (!model) return model.error();
  const trainer::Accumulation accumulation = manifest.accumulation == accumulation_name(trainer::Accumulation::kFloat)
                                                 ? trainer::Accumulation::kFloat
                                                 : trainer::Accumulation::kFixedPoint;
  for (int block = 0; block < model->blocks(); ++block) {
    const trainer::StageLayout layout = layout_of(*model, block, block + 1);
    std::vector<storage::WantedTensor> wanted;
    const trainer::StageState room = room_for(manifest, *model, layout.elements, accumulation);
    for (const trainer::StateTensor& tensor : state_tensors(*model, accumulation, layout, room)) {
      wanted.push_back(tensor.stored);
    }
    if (const auto fetches = reshard(manifest, wanted); !fetches) return fetches.error();
  }
  return {};
}

// Directories of saves that nobody committed.
std::vector<std::string> orphans_of(const storage::CatalogSurvey& survey) {
  std::set<std::string> known;
  for (const storage::Head& record : survey.records) known.insert(directory_of(record.lineage, record.checkpoint));
  for (const storage::Damage& damage : survey.damaged) known.insert(damage.checkpoint);
  std::vector<std::string> orphans;
  for (const storage::CheckpointTrace& trace : survey.directory.traces) {
    if (!known.contains(trace.directory)) orphans.push_back(trace.directory);
  }
  return orphans;
}

Status audit_restore(CheckpointStore& store, const storage::CatalogListing& listing, int threads, Streams& streams,
                     AuditReport& report) {
  const auto violated = [&](const std::string& checkpoint, const Error& error) {
    report.violations.push_back({Proof::kRestore, checkpoint, error.message});
  };
  for (const storage::Damage& damage : listing.damaged) {
    const bool is_head = damage.checkpoint == storage::kHeadName;
    report.violations.push_back({is_head ? Proof::kChain : Proof::kRestore, damage.checkpoint, damage.error.message});
  }
  const auto found = verify_checkpoints(store, listing.entries, threads, streams);
  if (!found) return found.error();
  for (std::size_t i = 0; i < listing.entries.size(); ++i) {
    const Manifest& manifest = listing.entries[i].manifest;
    report.files += std::ssize(manifest.files);
    report.bytes += manifest.bytes();
    const Status& verified = (*found)[i];
    const Status fits = verified ? check_blocks(manifest) : verified;
    if (!fits) violated(to_string(manifest.name), fits.error());
  }
  return {};
}

}  // namespace

Result<AuditReport> audit_job(CheckpointStore& store, int threads, Streams& streams) {
  const auto survey = survey_catalog(store.ports());
  if (!survey) return survey.error();
  const auto listing = store.catalog().list();
  if (!listing) return listing.error();
  if (survey->records.empty() && listing->damaged.empty()) return not_found("there is no checkpoint to audit");

  AuditReport report;
  report.orphans = orphans_of(*survey);
  audit_chain(survey->records, report);
  for (const CatalogEntry& entry : listing->entries) {
    if (entry.manifest.parent == entry.head.parent) continue;
    report.violations.push_back(
        {Proof::kChain, to_string(entry.manifest.name), "its manifest and its commit record name different parents"});
  }
  if (!listing->entries.empty()) {
    const CatalogEntry& newest = listing->entries.front();
    const auto ledger = store.catalog().ledger(newest);
    if (ledger) {
      audit_once(newest.manifest, *ledger, report);
    } else {
      report.violations.push_back({Proof::kOnce, to_string(newest.manifest.name), ledger.error().message});
    }
  }
  EVERSTEP_TRY(audit_restore(store, *listing, threads, streams, report));
  return report;
}

}  // namespace everstep::launcher
