#include "launcher/rehearse/chaos/proofs.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "launcher/cli/child_process.h"
#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/rehearse/chaos/chaos_job.h"
#include "launcher/rehearse/chaos/checks.h"
#include "launcher/rehearse/chaos/waiting.h"

namespace everstep::launcher::chaos {
namespace {

constexpr std::chrono::milliseconds kReplaysWithin{300'000};
constexpr std::size_t kMostOutput = std::size_t{1} << 24;

}  // namespace

Result<AuditReport> audit_checkpoints(const SavedJob& job, Streams& streams) {
  auto secret = read_secret_file(job.secret_file.string());
  if (!secret) return secret.error();
  auto store = open_checkpoint_store({job.checkpoints.string(), kJobName, std::move(*secret)}, StoreAccess::kExisting);
  if (!store) return store.error();
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return audit_job(**store, threads, streams);
}

Result<Finding> replay_checkpoints(const SavedJob& job, const std::filesystem::path& log) {
  const SignalWatch signals;
  Waiting waiting(signals);
  auto program = ChildProcess::start({sibling_program("everstep"), "replay", job.checkpoints.string(),
                                      "--secret-file=" + job.secret_file.string(), "--device=" + job.device},
                                     log);
  if (!program) return program.error();
  const auto ended = waiting.becomes_true([&] { return !program->is_running(); }, kReplaysWithin);
  if (!ended) return ended.error();
  if (!*ended) return Finding{Promise::kBits, false, "everstep replay does not end"};
  const auto output = read_file(log.string(), kMostOutput);
  return check_replay(*program->wait_status(), output ? *output : "");
}

Status damage_newest(const std::filesystem::path& checkpoints) {
  std::optional<std::filesystem::directory_entry> newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(checkpoints, error)) {
    if (entry.path().extension() != ".h5") continue;
    if (!newest || entry.last_write_time() > newest->last_write_time()) newest = entry;
  }
  if (!newest) return not_found("there is no file of a checkpoint");
  std::fstream file(newest->path(), std::ios::binary | std::ios::in | std::ios::out);
  const auto middle = static_cast<std::streamoff>(newest->file_size() / 2);
  file.seekg(middle);
  const int byte = file.get();
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 1));
  return {};
}

}  // namespace everstep::launcher::chaos
