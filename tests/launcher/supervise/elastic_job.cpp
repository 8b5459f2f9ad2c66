#include "tests/launcher/supervise/elastic_job.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "launcher/cli/process_table.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

// Generous: the machine may be busy with other things.
constexpr seconds kPatience{60};
constexpr milliseconds kGone{3000};
constexpr milliseconds kLook{10};

// That of no process, and no number that a signal can be sent to (send_signal).
constexpr pid_t kNoProcess = 0;

// Without the last line as long as only half of it is there.
std::vector<std::string> lines_with(const std::string& text, const std::string& what) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    if (line.find(what) != std::string::npos) found.push_back(line);
  }
  return found;
}

int number_of(const std::string& line, const std::string& field) {
  return parse_number<int>(field_of(line, field).value_or("")).value_or(0);
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::optional<std::string> field_of(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(" " + name + "=");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + name.size() + 2;
  if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  return line.substr(begin, line.find(' ', begin) - begin);
}

ElasticJob::ElasticJob() {
  std::string corpus;
  while (corpus.size() < 8000) corpus += "the quick brown fox jumps over the lazy dog. ";
  file("corpus.txt", corpus);
}

ElasticJob::~ElasticJob() {
  if (HasFailure()) std::cerr << story();
  train_.reset();
  added_.clear();
}

ElasticJob::Words ElasticJob::train_words(const Words& more, const std::string& output) const {
  Words words{"--output=" + path(output),
              "--checkpoint-dir=" + path("saves"),
              "--checkpoint-every=10",
              "--data=" + path("corpus.txt"),
              "--workers=4",
              "--steps=100000",
              "--layers=6",
              "--hidden=16",
              "--heads=2",
              "--sequence=16",
              "--minibatch=2",
              "--window=" + std::to_string(kWindow),
              "--reproducible",
              "--lease-ttl=5",
              "--join-debounce=0.2",
              "--join-interval=0.5"};
  replace_options(words, more);
  words.insert(words.begin(), "train");
  return words;
}

void ElasticJob::start(const Words& more, const std::string& output) {
  output_ = output;
  ended_.reset();
  train_ = std::make_unique<RunningProgram>(train_words(more, output), paced(environment, pace), wrapper);
}

AssertionResult ElasticJob::starts(int workers, const Words& more) {
  start(more);
  const AssertionResult trains = trains_with(workers);
  return trains ? saves(step() + 1) : trains;
}

RunningProgram& ElasticJob::add_worker(const std::string& name, const Words& more, const Words& under) {
  Words words{worker_config(), "--job=job", "--name=" + name, "--output=" + path(output_)};
  replace_options(words, more);
  words.insert(words.begin(), "worker");
  return *added_.emplace_back(std::make_unique<RunningProgram>(words, paced({}, pace), under));
}

void ElasticJob::scale(int workers) const {
  const Ended asked = run_program({"scale", std::to_string(workers), dir()});
  EXPECT_EQ(asked.exit_code, 0) << asked.log;
}

pid_t ElasticJob::worker(int number) const {
  const std::string log = path(output_ + "/worker-" + std::to_string(number) + ".log");
  std::vector<std::string> started;
  const auto has_started = [&] { return !(started = lines_with(content(log), "event=started")).empty(); };
  EXPECT_TRUE(number >= 0 && becomes("worker " + std::to_string(number), has_started));
  return started.empty() ? kNoProcess : number_of(started.back(), "pid");
}

int ElasticJob::leader() const {
  int found = -1;
  const auto is_there = [&] {
    const Ended status = run_program({"status", dir(), "--json"});
    const auto json = storage::parse_json(status.out);
    if (!json) return false;
    const auto workers = storage::JsonReader(*json).elements_at("workers");
    for (const storage::JsonReader& one : workers ? *workers : std::vector<storage::JsonReader>()) {
      const auto name = one.text_at("name");
      if (*one.boolean_at("leads")) found = parse_number<int>(name->substr(1)).value_or(-1);
    }
    return found >= 0;
  };
  EXPECT_TRUE(becomes("a leader", is_there));
  return found;
}

std::string ElasticJob::etcd() const {
  std::vector<std::string> created;
  const auto is_there = [&] { return !(created = lines_with(log(), "event=job_")).empty(); };
  EXPECT_TRUE(becomes("a job", is_there));
  return created.empty() ? "" : field_of(created.front(), "etcd").value_or("");
}

std::string ElasticJob::dir() const {
  etcd();
  return "--dir=" + path(output_);
}

std::string ElasticJob::worker_config() const {
  etcd();
  return "--config=" + path(output_ + "/job.conf");
}

std::vector<GenerationLine> ElasticJob::generations() const {
  std::vector<GenerationLine> found;
  for (const std::string& line : lines_with(log(), "event=generation ")) {
    found.push_back({number_of(line, "n"), field_of(line, "plan").value_or(""), number_of(line, "workers"),
                     field_of(line, "from").value_or(""), number_of(line, "redone"),
                     field_of(line, "reason").value_or("")});
  }
  return found;
}

int ElasticJob::generation() const {
  const auto all = generations();
  return all.empty() ? 0 : all.back().number;
}

int ElasticJob::step() const {
  const auto lines = lines_with(content(path(output_ + "/metrics.jsonl")), "\"step\":");
  if (lines.empty()) return 0;
  const auto json = storage::parse_json(lines.back());
  return static_cast<int>(*storage::JsonReader(*json).integer_at("step"));
}

int ElasticJob::checkpoints() const { return static_cast<int>(lines_with(log(), "event=checkpoint_saved ").size()); }

AssertionResult ElasticJob::becomes(const std::string& what, const std::function<bool()>& condition) const {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const bool has_ended = ended_ || is_gone_within(train_->pid(), milliseconds(0));
    if (condition()) return AssertionSuccess();
    if (has_ended) return AssertionFailure() << "the run ended before there was " << what;
    if (std::chrono::steady_clock::now() >= limit) return AssertionFailure() << "no " << what << " in time";
    std::this_thread::sleep_for(kLook);
  }
}

AssertionResult ElasticJob::reaches(int wanted) const {
  return becomes("step " + std::to_string(wanted), [&] { return step() >= wanted; });
}

AssertionResult ElasticJob::goes_on(int steps) const {
  const int before = step();
  return becomes(std::to_string(steps) + " steps after " + std::to_string(before),
                 [&] { return step() >= before + steps; });
}

AssertionResult ElasticJob::saves(int wanted) const {
  const auto is_saved = [&] {
    const auto lines = lines_with(log(), "event=checkpoint_saved ");
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return number_of(line, "step") >= wanted; });
  };
  return becomes("checkpoint of step " + std::to_string(wanted), is_saved);
}

AssertionResult ElasticJob::trains_with(int workers, int after) const {
  const auto is_there = [&] {
    const auto all = generations();
    return std::any_of(all.begin(), all.end(),
                       [&](const GenerationLine& one) { return one.number > after && one.workers == workers; });
  };
  return becomes("generation of " + std::to_string(workers), is_there);
}

AssertionResult ElasticJob::says(const std::string& text) const {
  return becomes("word of " + text, [&] { return log().find(text) != std::string::npos; });
}

Ended ElasticJob::expect_end(int exit_code) {
  ended_ = train_->wait(kPatience);
  EXPECT_EQ(ended_->exit_code, exit_code);
  expect_nobody_left();
  return *ended_;
}

Ended ElasticJob::expect_stop() {
  train().signal(SIGINT);
  return expect_end(75);
}

void ElasticJob::expect_nobody_left() const {
  const auto limit = std::chrono::steady_clock::now() + kGone;
  std::vector<pid_t> left;
  while (!(left = processes_naming(path(""))).empty() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(kLook);
  }
  for (const pid_t process : left) {
    ADD_FAILURE() << "still there: " << content("/proc/" + std::to_string(process) + "/cmdline");
  }
}

void ElasticJob::expect_proofs(const Words& more) const {
  for (const char* proof : {"audit", "replay"}) {
    Words words{proof, path("saves")};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run_program(words);
    EXPECT_EQ(ended.exit_code, 0) << proof << "\n" << ended.out << ended.log;
  }
}

std::vector<Stretch> ElasticJob::stretches() const {
  const auto json = storage::parse_json(run_program({"audit", path("saves"), "--json"}).out);
  if (!json) return {};
  std::vector<Stretch> found;
  const auto all = storage::JsonReader(*json).elements_at("stretches");
  for (const storage::JsonReader& one : all ? *all : std::vector<storage::JsonReader>()) {
    found.push_back({static_cast<int>(*one.integer_at("generation")), *one.text_at("plan"),
                     static_cast<int>(*one.integer_at("from")), static_cast<int>(*one.integer_at("to"))});
  }
  return found;
}

std::string ElasticJob::log() const { return ended_ ? ended_->log : train_->log(); }

std::string ElasticJob::story() const {
  if (!train_) return {};
  std::string text = "--- everstep train\n" + log();
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(path(output_), none)) {
    if (entry.path().extension() != ".log") continue;
    text += "--- " + entry.path().filename().string() + "\n" + content(entry.path());
  }
  return text;
}

}  // namespace everstep::launcher
