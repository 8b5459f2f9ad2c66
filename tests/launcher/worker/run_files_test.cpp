#include <filesystem>

#include <gmock/gmock.h>

#include "launcher/job/run_directory.h"
#include "launcher/worker/run_trace.h"
#include "launcher/worker/worker_arguments.h"
#include "storage/json/json_reader.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;

using RunFiles = CommandFiles;

TEST_F(RunFiles, HaveADirectoryOfTheirOwn) {
  EXPECT_EQ(default_run_path(1'794'807'600, 0x8c1f0e5d2a7b9c34), "runs/20261116-054000-8c1f0e5d2a7b9c34");
  const auto made = make_run_directory(path("a/b"));
  ASSERT_TRUE(made.ok()) << made.error();
  EXPECT_TRUE(std::filesystem::is_directory(made->path));
  EXPECT_TRUE(make_run_directory(path("a/b")).ok());
}

TEST_F(RunFiles, AreNeverOverwritten) {
  ASSERT_TRUE(make_run_directory(path("run")).ok());
  for (const char* name : {"run/metrics.jsonl", "run/config.txt", "run/worker-0.log"}) {
    file(name, "old");
    const auto again = make_run_directory(path("run"));
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().message, HasSubstr("already holds a run"));
    EXPECT_EQ(text_of(name), "old");
    std::filesystem::remove(path(name));
  }
}

TEST_F(RunFiles, OfARunThatGoesOnAreKept) {
  ASSERT_TRUE(make_run_directory(path("run")).ok());
  file("run/metrics.jsonl", "old");
  EXPECT_TRUE(make_run_directory(path("run"), true).ok());
  EXPECT_EQ(text_of("run/metrics.jsonl"), "old");
}

TEST_F(RunFiles, CannotBeMadeInsideAFile) {
  const auto made = make_run_directory(file("plain", "") + "/run");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("cannot make the directory"));
}

TEST(WorkerArguments, SpellOutEverySettingWhereverItCameFrom) {
  CommandSpec spec;
  spec.name = "train";
  spec.options = train_options();
  const ConfigSources sources{*parse_args(spec, {"--workers=4", "--reproducible"}),
                              {{"EVERSTEP_STEPS", "7"}},
                              ConfigFile{"run.conf", "data = my corpus.txt\n"}};
  const Config config = *merge_config(spec, sources);
  const WorkerIdentity identity{3, 0xabc, "runs/x", Generation{5}, storage::Digest{{std::byte{7}}}};
  const auto args = worker_arguments(config, identity);
  EXPECT_THAT(args, Contains("--steps=7"));
  EXPECT_THAT(args, Contains("--data=my corpus.txt"));
  EXPECT_THAT(args, Contains("--lineage=0000000000000abc"));

  const auto read = read_worker_arguments(args);
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read->identity, identity);
  for (const Setting& setting : config.settings) {
    if (setting.name == "output") continue;
    EXPECT_EQ(read->config.setting(setting.name).text, setting.text) << setting.name;
  }
}

TEST(WorkerArguments, AreRefusedWithoutAnIdentity) {
  EXPECT_FALSE(read_worker_arguments({"--workers=4"}).ok());
  EXPECT_FALSE(read_worker_arguments({"--rank=x", "--lineage=0000000000000abc", "--generation=1"}).ok());
  EXPECT_FALSE(
      read_worker_arguments({"--rank=1", "--lineage=0000000000000abc", "--generation=1", "--start-from=x"}).ok());
  EXPECT_FALSE(read_worker_arguments({"--no-such-option"}).ok());
}

scheduler::Plan two_workers() {
  scheduler::Plan plan;
  plan.kind = scheduler::ScheduleKind::kOneFOneB;
  plan.depth = 2;
  plan.window = 2;
  plan.cuts = {0, 1, 2};
  plan.workers.resize(2);
  return plan;
}

std::string line(const char* op, Tick started, Tick end) {
  return trace_line({*scheduler::parse_op(op), 0, started, end});
}

TEST(RunTrace, JoinsTheWorkersOnOneClock) {
  const Tick start = 5'000'000'000'000;
  const auto trace = merge_traces(
      two_workers(), {line("F0.0.0@0", start, start + 2000) + line("B0.0.0@0", start + 9000, start + 12'000),
                      line("F0.0.0@1", start + 3000, start + 4000) + line("U0", start + 20'000, 0)});
  ASSERT_TRUE(trace.ok()) << trace.error();
  const auto json = storage::parse_json(*trace);
  ASSERT_TRUE(json.ok()) << json.error();
  std::vector<std::string> slices;
  const auto events = storage::JsonReader(*json).elements_at("traceEvents");
  for (const storage::JsonReader& event : *events) {
    if (*event.text_at("ph") == "M") continue;
    slices.push_back(*event.text_at("name") + " on " + std::to_string(*event.integer_at("tid")) + " at " +
                     std::to_string(*event.number_at("ts")) + " for " + std::to_string(*event.number_at("dur")));
  }
  EXPECT_EQ(slices, (std::vector<std::string>{"F0 on 0 at 0.000000 for 2.000000", "B0 on 0 at 9.000000 for 3.000000",
                                              "F0 on 1 at 3.000000 for 1.000000"}));
}

TEST(RunTrace, RefusesDamagedLines) {
  EXPECT_FALSE(merge_traces(two_workers(), {"F0.0.0@0 1 2\n", "tea 1 2\n"}).ok());
  EXPECT_FALSE(merge_traces(two_workers(), {"F0.0.0@0 one 2\n", ""}).ok());
}

}  // namespace
}  // namespace everstep::launcher
