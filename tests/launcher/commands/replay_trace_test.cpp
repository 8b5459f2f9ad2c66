#include <gmock/gmock.h>

#include "launcher/rehearse/trace/trace_report.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

class ReplayTrace : public CommandFiles {
 protected:
  // What it says of that trace, without starting anything.
  std::string refusal(const std::string& text, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args{"replay-trace", file("trace.csv", text), "--output=" + path("run")};
    args.insert(args.end(), more.begin(), more.end());
    return failure_of(args, 64);
  }
};

TEST_F(ReplayTrace, NamesTheLineOfABadTrace) {
  EXPECT_THAT(refusal("0,add,a\n1000,remove,b\n"), HasSubstr("trace.csv: line 2: node 'b' is not there"));
  EXPECT_THAT(refusal("0,add,a\nrubbish\n"), HasSubstr("line 2: cannot read 'rubbish'"));
  EXPECT_THAT(refusal("2021-12-11, 11:11:30, 55\n2021-12-11, 12:12:30, 54\n"), HasSubstr("counts workers"));
  EXPECT_THAT(failure_of({"replay-trace", path("none.csv")}, 64), HasSubstr("none.csv"));
}

TEST_F(ReplayTrace, RefusesASliceThatIsNotThere) {
  const std::string hour = "0,add,a\n3600000,remove,a\n";
  EXPECT_THAT(refusal(hour, {"--from=0.5"}), HasSubstr("does not cover 0.5 h to 1.5 h"));
  EXPECT_THAT(refusal(hour, {"--hours=2"}), HasSubstr("lasts 1 h"));
  EXPECT_THAT(refusal(hour, {"--hours=2", "--busiest-hour"}), HasSubstr("lasts 1 h"));
  EXPECT_THAT(refusal(hour, {"--from=0", "--busiest-hour"}), HasSubstr("leave one of the two out"));
  EXPECT_THAT(refusal(hour, {"--speedup=0"}), HasSubstr("--speedup=0"));
  EXPECT_THAT(refusal(hour, {"--window=0"}), HasSubstr("--window=0"));
}

TEST_F(ReplayTrace, ExplainsItsRule) {
  const CommandRun help = run_command({"replay-trace", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("ceil(r N / K)"));
  EXPECT_THAT(help.out, HasSubstr("everstep replay-trace examples/traces/bamboo/p3-trace.csv"));
}

// A rehearsal of a slice with two changes that cost 0.9 s and 0.1 s, told by hand.
class HandMadeRehearsal : public testing::Test {
 protected:
  HandMadeRehearsal() {
    request_.path = "trace.csv";
    request_.slice = {0, 100'000, {"a", "b"}, {{20'000, {"a"}, {}}, {60'000, {}, {"c"}}}};
    request_.most_workers = 2;
    request_.schedule = map_to_workers(request_.slice, 2);
    request_.speedup = 10;
    request_.limits = scaled_limits(10);
    request_.train.settings = {{"emulate", "10:20", Source::kDefault, 0}};
    result_.record.window = 8;
    add_steps(1, {0, 0.5, 1, 1.5, 2});
    result_.record.losses = {ticks_of(2.25)};
    add_steps(2, {3.4, 3.9, 4.4, 4.9});
    result_.record.joins = {{2, ticks_of(4.5), ticks_of(5.5)}};
    add_steps(3, {5.5, 6, 6.5, 7});
    result_.job.workers = 2;
    result_.job.options.model = trainer::ModelConfig{};
    result_.took_all_in = true;
    result_.audited = 104;
  }

  void add_steps(std::int64_t generation, const std::vector<double>& times) {
    for (const double time : times) result_.record.steps.push_back({{generation}, next_step_++, ticks_of(time)});
  }

  TraceRequest request_;
  TraceResult result_;
  std::int64_t next_step_ = 1;
};

TEST_F(HandMadeRehearsal, HasAReportThatAddsUp) {
  const TraceReport report = report_of(request_, result_);
  EXPECT_NEAR(report.figures.lost(), 1.0, 1e-9);
  EXPECT_NEAR(report.goodput, 0.99, 1e-9) << "one real second of 100 s of trace";
  EXPECT_NEAR(report.cost, 0.5, 1e-9);
  EXPECT_EQ(report.joins.joined, 1);
  EXPECT_NEAR(report.late_share, 1.0 / 160, 1e-9) << "2 workers for 20 s, 1 for 40 s, 2 for 40 s";
  EXPECT_NEAR(report.late_share_scaled, 10.0 / 160, 1e-9);
  const std::string text = report_text(request_, result_, report);
  EXPECT_THAT(text, HasSubstr("goodput    0.9900 = 1 - (1.000 s stalled + 0.000 s redone + 0.000 s paused) / 100 s"));
  EXPECT_THAT(text, HasSubstr("join debounce 0.2 s, join interval 3 s, lease 5 s"));
  EXPECT_THAT(text, HasSubstr("104 minibatches, each exactly once"));
  EXPECT_THAT(text, HasSubstr("Oobleck"));
}

TEST_F(HandMadeRehearsal, IsComparedWithThePredictionAtAGivenCost) {
  request_.cost = 5;
  const TraceReport report = report_of(request_, result_);
  EXPECT_EQ(report.predicted_cost, 5);
  EXPECT_LT(report.predicted, report.goodput);
  EXPECT_THAT(report_text(request_, result_, report), HasSubstr("at 5.000 s for each of 2 changes, as --cost says"));
}

TEST_F(HandMadeRehearsal, SaysWhatWentWrong) {
  result_.problems = {"once: entry 3 comes twice"};
  result_.took_all_in = false;
  result_.ended = {"w1"};
  const std::string text = report_text(request_, result_, report_of(request_, result_));
  EXPECT_THAT(text, HasSubstr("FAILED: once: entry 3 comes twice"));
  EXPECT_THAT(text, HasSubstr("w1, though nobody wanted it to"));
  EXPECT_THAT(text, HasSubstr("did not take all workers in"));
}

}  // namespace
}  // namespace everstep::launcher
