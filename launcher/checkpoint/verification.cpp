#include "launcher/checkpoint/verification.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "launcher/cli/long_work.h"
#include "trainer/checkpoints/parallel.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::FileRecord;

// One file, and which of the checkpoints name it.
struct FileTask {
  std::uint64_t lineage = 0;
  FileRecord file;
  std::vector<std::size_t> named_by;
  Status found;
};

std::vector<FileTask> tasks_of(const std::vector<CatalogEntry>& entries) {
  std::vector<FileTask> tasks;
  std::map<std::tuple<std::string, std::uint64_t, std::string>, std::size_t> known;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const storage::Manifest& manifest = entries[i].manifest;
    for (const FileRecord& file : manifest.files) {
      const auto key = std::tuple(path_of(manifest.lineage, file), file.size, to_string(file.sha256));
      const auto [place, is_new] = known.emplace(key, tasks.size());
      if (is_new) tasks.push_back({manifest.lineage, file, {}, {}});
      tasks[place->second].named_by.push_back(i);
    }
  }
  return tasks;
}

std::uint64_t total_bytes(const std::vector<FileTask>& tasks) {
  std::uint64_t bytes = 0;
  for (const FileTask& task : tasks) bytes += task.file.size;
  return bytes;
}

// False if somebody asked to stop. Signals and terminal belong to the calling thread, files to the others.
bool run_tasks(const storage::FilePorts& ports, std::vector<FileTask>& tasks, int threads, LongWork& work) {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> stopped{false};
  std::atomic<bool> done{false};
  std::thread workers([&] {
    (void)trainer::for_each_in_parallel(tasks.size(), threads, [&](std::size_t i) -> Status {
      if (stopped) return Error{ErrorCode::kCancelled, "", ""};
      tasks[i].found = verify_block_file(ports, tasks[i].lineage, tasks[i].file);
      bytes += tasks[i].file.size;
      return {};
    });
    done = true;
  });
  while (!done) {
    if (!work.advance_to(bytes)) stopped = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  workers.join();
  return !stopped;
}

}  // namespace

Result<std::vector<Status>> verify_checkpoints(CheckpointStore& store, const std::vector<CatalogEntry>& entries,
                                               int threads, Streams& streams) {
  std::vector<FileTask> tasks = tasks_of(entries);
  LongWork work(streams, "verifying", total_bytes(tasks));
  if (!run_tasks(store.files(), tasks, threads, work)) return work.stopped_error();

  std::vector<Status> found(entries.size());
  for (const FileTask& task : tasks) {
    for (const std::size_t i : task.named_by) {
      if (found[i].ok()) found[i] = task.found;
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (found[i].ok()) found[i] = store.catalog().verify_ledger(entries[i]);
  }
  if (entries.empty() || !found.front().ok()) return found;
  if (const auto ledger = store.catalog().ledger(entries.front()); !ledger) found.front() = ledger.error();
  return found;
}

}  // namespace everstep::launcher
