#include "launcher/job/secret_check.h"

#include "launcher/cli/values.h"
#include "launcher/job/checkpoint_choice.h"
#include "storage/documents.h"
#include "storage/file_system.h"

namespace everstep::launcher {
namespace {

constexpr const char* kDropSecret = "drop-secret";

Failure refuse(const std::string& message, const std::string& hint) {
  return Failure(invalid_argument(message, hint), ExitCode::kUsage);
}

// An unsigned document is what sealing without a secret makes of its text.
Result<bool> is_signed(CheckpointStore& unauthenticated, const storage::Head& head) {
  const storage::CatalogPorts ports = unauthenticated.ports();
  const std::string path = manifest_path(head.lineage, head.checkpoint, head.writer);
  const auto sealed = read_text(ports.files.files, path, storage::kLargestDocument);
  if (!sealed) return sealed.error();
  const auto text = ports.seal.open(*sealed);
  if (!text) return text.error();
  return ports.seal.seal(*text) != *sealed;
}

}  // namespace

OptionSpec drop_secret_option() {
  return {.name = kDropSecret,
          .help = "Go on without a secret from checkpoints that were made with one: what follows is unsigned",
          .side = OptionSide::kCommand,
          .on_resume = OnResume::kAnew};
}

Outcome check_secret(const Config& config, const StoreLocation& location, const std::string& wanted) {
  const bool has_secret = !location.secret.empty();
  const bool drops = Values(config).flag(kDropSecret);
  if (has_secret && drops) return config.reject(kDropSecret, "does not go with --secret-file", "leave one of them out");
  const auto store = open_checkpoint_store({location.directory, location.job, ""}, StoreAccess::kExisting);
  if (!store) return {};
  const auto listing = (*store)->catalog().list();
  if (!listing) return {};
  const auto start = choose_checkpoint(*listing, wanted);
  if (!start) return {};
  const auto had_secret = is_signed(**store, start->head);
  if (!had_secret || *had_secret == has_secret || drops) return {};
  const std::string name = "checkpoint " + to_string(start->manifest.name) + " of job '" + location.job + "'";
  if (has_secret) {
    return refuse(name + " was made without a secret, and cannot be told from a forged one",
                  "leave --secret-file out, or name a step that was made with the secret");
  }
  return refuse(name + " was made with a secret, and without it what follows would be unsigned",
                "--secret-file=FILE names the file that holds the secret; --drop-secret goes on without one");
}

}  // namespace everstep::launcher
