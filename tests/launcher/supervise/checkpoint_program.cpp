#include "tests/launcher/supervise/checkpoint_program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "launcher/job/checkpoint_store.h"
#include "storage/json/json_reader.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

CheckpointProgram::CheckpointProgram() {
  std::string corpus;
  while (corpus.size() < 8000) corpus += "the quick brown fox jumps over the lazy dog. ";
  file("corpus.txt", corpus);
}

std::vector<std::string> CheckpointProgram::with(Words plan, const std::vector<std::string>& more) const {
  std::vector<std::string> args{"--etcd=none",
                                "--output=" + path("run"),
                                "--checkpoint-dir=" + path("saves"),
                                "--data=" + path("corpus.txt"),
                                "--steps=" + std::to_string(kSteps),
                                "--layers=6",
                                "--hidden=16",
                                "--heads=2",
                                "--sequence=16",
                                "--minibatch=2",
                                "--window=8",
                                "--reproducible"};
  args.insert(args.end(), plan.begin(), plan.end());
  replace_options(args, more);
  args.insert(args.begin(), "train");
  return args;
}

CheckpointProgram::Losses CheckpointProgram::losses_of_whole_run(Words plan) const {
  const Ended ended = run_program(with(plan, {"--output=" + path("whole"), "--job=whole", "--checkpoint-every=1000"}));
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  return losses_in("whole");
}

CheckpointProgram::Losses CheckpointProgram::losses_in(const std::string& run) const {
  Losses losses;
  std::istringstream lines(text_of(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto json = storage::parse_json(line);
    const storage::JsonReader reader(*json);
    losses[static_cast<int>(*reader.integer_at("step"))] = *reader.number_at("loss");
  }
  return losses;
}

void CheckpointProgram::expect_continues(const Losses& whole, const Losses& part) const {
  ASSERT_FALSE(part.empty());
  EXPECT_EQ(part.rbegin()->first, kSteps);
  EXPECT_EQ(std::ssize(part), kSteps + 1 - part.begin()->first);
  for (const auto& [step, loss] : part) EXPECT_EQ(loss, whole.at(step)) << "step " << step;
  const Ended ends = run_program({"checkpoint", "diff", "HEAD", "HEAD", "--checkpoint-dir=" + path("saves"),
                                  "--other-job=whole", "--only=tensors"});
  EXPECT_EQ(ends.exit_code, 0) << ends.out << ends.log;
}

std::unique_ptr<RunningProgram> CheckpointProgram::start_until_commit(const std::vector<std::string>& args) const {
  auto program = std::make_unique<RunningProgram>(args, paced());
  if (!goes_on_until(*program, [this] { return !head().empty(); })) ADD_FAILURE() << program->wait(seconds(0)).log;
  return program;
}

bool CheckpointProgram::goes_on_until(const RunningProgram& program, const std::function<bool()>& condition) {
  while (!condition()) {
    if (is_gone_within(program.pid(), milliseconds(2))) return false;
  }
  return true;
}

void CheckpointProgram::kill_worker_after_first_commit(const std::vector<std::string>& args) const {
  const auto program = start_until_commit(args);
  const std::vector<pid_t> workers = program->children();
  ASSERT_FALSE(workers.empty()) << "it was too fast to be killed";
  send_signal(workers.back(), SIGKILL);
  const Ended ended = program->wait(seconds(30));
  EXPECT_EQ(ended.exit_code, 69) << ended.log;
}

std::string CheckpointProgram::head() const {
  const auto text = read_file(path("saves/job/HEAD"), 1 << 16);
  return text ? *text : "";
}

std::vector<storage::CatalogEntry> CheckpointProgram::checkpoints() const {
  const auto store = open_checkpoint_store({path("saves"), "job", ""}, StoreAccess::kExisting);
  EXPECT_TRUE(store.ok());
  return store.ok() ? (*store)->catalog().list()->entries : std::vector<storage::CatalogEntry>();
}

void CheckpointProgram::damage(const storage::Manifest& manifest, const std::string& kind) {
  const auto record = std::find_if(manifest.files.begin(), manifest.files.end(),
                                   [&](const storage::FileRecord& file) { return to_string(file.kind) == kind; });
  ASSERT_NE(record, manifest.files.end());
  std::fstream bytes(path("saves/job/" + path_of(manifest.lineage, *record)),
                     std::ios::in | std::ios::out | std::ios::binary);
  const auto place = static_cast<std::streamoff>(record->size / 2) + damages_++;
  bytes.seekg(place);
  const auto flipped = static_cast<char>(bytes.get() ^ 1);
  bytes.seekp(place);
  bytes.put(flipped);
  EXPECT_TRUE(bytes.good());
}

}  // namespace everstep::launcher
