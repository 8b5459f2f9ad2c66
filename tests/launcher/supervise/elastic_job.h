#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"

namespace everstep::launcher {

// One line "event=generation …" of `everstep train`.
struct GenerationLine {
  int number = 0;
  std::string plan;
  int workers = 0;
  std::string origin;
  int redone = 0;
  std::string reason;
};

// What a generation committed, as `everstep audit` tells it.
struct Stretch {
  int generation = 0;
  std::string plan;
  int from = 0;
  int to = 0;
};

// Runs jobs of real processes: `everstep train` with an etcd of its own or a given one, and further workers. Logs tell
// it when to go on with a test; what is true of a job in the end is proved by `everstep audit` and `everstep replay`.
// All processes end with the test.
class ElasticJob : public CommandFiles {
 protected:
  using Words = std::vector<std::string>;

  static constexpr int kWindow = 8;  // unless a test asks for another one

  ElasticJob();
  ~ElasticJob() override;

  // The options of `everstep train` for the smallest GPT that has all kinds of blocks, with more steps than anybody
  // waits for, checkpoints in saves/job and logs in `output`; further options replace those of the same name.
  Words train_words(const Words& more, const std::string& output = "run") const;
  void start(const Words& more, const std::string& output = "run");
  // Of all processes of the job ("NAME=value"); none at first.
  Words environment;
  // How long the workers of the job rest after each op.
  std::chrono::microseconds pace = kPace;
  // A program that becomes `everstep train`, such as nohup; none at first.
  Words wrapper;
  // The same, up to a checkpoint of a generation in which so many train.
  testing::AssertionResult starts(int workers, const Words& more);
  // `everstep worker` for the job that runs, with its log in the directory of the run; `under` becomes it.
  RunningProgram& add_worker(const std::string& name, const Words& more = {}, const Words& under = {});
  // `everstep scale`
  void scale(int workers) const;

  RunningProgram& train() { return *train_; }
  // Of those that `everstep train` started. If there is none in time the test fails, and its process is 0. The number
  // of a leader that nobody found is −1, also of one that the test added itself.
  pid_t worker(int number) const;
  int leader() const;
  std::string etcd() const;  // the URLs
  // How the directory of the run names the job, once there is one: to commands about it, and to further workers.
  std::string dir() const;            // "--dir=…"
  std::string worker_config() const;  // "--config=…"
  std::vector<GenerationLine> generations() const;
  int generation() const;   // the newest; 0: none yet
  int step() const;         // the newest
  int checkpoints() const;  // how often one was saved

  // Wait, but not longer than `everstep train` runs.
  testing::AssertionResult reaches(int step) const;
  testing::AssertionResult goes_on(int steps = 20) const;  // makes so many more
  testing::AssertionResult saves(int step) const;          // the checkpoint of that step or of a later one
  testing::AssertionResult trains_with(int workers, int after = 0) const;  // in a generation after that one
  testing::AssertionResult says(const std::string& text) const;
  testing::AssertionResult becomes(const std::string& what, const std::function<bool()>& condition) const;

  // The end of `everstep train`, which leaves no process behind but those that the test added itself.
  Ended expect_end(int exit_code = 0);
  Ended expect_stop();  // after Ctrl-C
  void expect_nobody_left() const;
  // By audit and replay: each minibatch once, the chain of commits, checkpoints that restore, the bits of a replay.
  void expect_proofs(const Words& more = {}) const;
  std::vector<Stretch> stretches() const;

  // Everything that was logged, for a test that fails.
  std::string story() const;

 private:
  std::string log() const;  // of `everstep train`

  std::string output_;
  std::unique_ptr<RunningProgram> train_;
  std::optional<Ended> ended_;
  std::vector<std::unique_ptr<RunningProgram>> added_;
};

// `name=value` or `name="value"` in a line of a log; nothing if it is not there.
std::optional<std::string> field_of(const std::string& line, const std::string& name);

}  // namespace everstep::launcher
