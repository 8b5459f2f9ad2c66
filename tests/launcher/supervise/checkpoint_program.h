#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/catalog.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"

namespace everstep::launcher {

// Runs the real program with checkpoints in <directory>/saves/job.
class CheckpointProgram : public CommandFiles {
 protected:
  static constexpr int kSteps = 120;
  static constexpr const char* kUntilStopped = "--steps=1000000";
  static constexpr const char* kTwoStages[] = {"--workers=2", "--schedule=1f1b", "--depth=2"};

  using Losses = std::map<int, double>;  // by step
  using Words = std::span<const char* const>;

  CheckpointProgram();

  // `everstep train` of a small model on a corpus, under that plan. The further options replace those of the
  // same name.
  std::vector<std::string> with(Words plan, const std::vector<std::string>& more) const;

  // Its end is saved as the job "whole".
  Losses losses_of_whole_run(Words plan) const;
  Losses losses_in(const std::string& run) const;

  // The steps of `part` go from the one after a checkpoint to the end, and have the losses of the whole run, bit for
  // bit; weights and moments at the end are equal too.
  void expect_continues(const Losses& whole, const Losses& part) const;

  // A run that has committed at least one checkpoint and goes on. Its workers rest between ops.
  std::unique_ptr<RunningProgram> start_until_commit(const std::vector<std::string>& args) const;
  // False if it ends before.
  static bool goes_on_until(const RunningProgram& program, const std::function<bool()>& condition);
  void kill_worker_after_first_commit(const std::vector<std::string>& args) const;

  std::string head() const;  // the text of HEAD, empty if there is none

  // All committed checkpoints, newest first.
  std::vector<storage::CatalogEntry> checkpoints() const;

  // Flips a bit in a file of that kind, never the same bit twice.
  void damage(const storage::Manifest& manifest, const std::string& kind);

 private:
  int damages_ = 0;
};

}  // namespace everstep::launcher
