#include "launcher/doctor/judgement.h"

#include <gmock/gmock.h>

namespace everstep::launcher::doctor {
namespace {

using storage::Json;
using testing::HasSubstr;

Json parsed(const std::string& text) {
  auto json = storage::parse_json(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

void expect_failed(const Check& check, const std::string& reason) {
  EXPECT_EQ(check.health, Health::kFailed) << check.figure;
  EXPECT_THAT(check.reason, HasSubstr(reason));
}

Json operators(const std::string& on_cpu, const std::vector<std::string>& on_devices = {}) {
  const auto list = [](const std::string& bits) {
    return R"([{"name": "gelu_", "bits": ")" + bits + R"(", "known": "a1"}, )" +
           R"({"name": "swap_", "bits": "b2", "known": "b2"}])";
  };
  std::string devices;
  for (std::size_t i = 0; i < on_devices.size(); ++i) {
    devices += (i == 0 ? R"(, "devices": [)" : ", ") + (R"({"device": "cuda:)" + std::to_string(i)) +
               R"(", "operators": )" + list(on_devices[i]) + "}";
  }
  return parsed(R"({"cpu": )" + list(on_cpu) + devices + (on_devices.empty() ? "}" : "]}"));
}

TEST(DoctorsOperators, PassWithKnownBitsOnTheCpuAndTheSameOnADevice) {
  EXPECT_EQ(judge_operators(operators("a1"))->health, Health::kPassed);
  const auto on_device = judge_operators(operators("a1", {"a1"}));
  EXPECT_EQ(on_device->health, Health::kPassed);
  EXPECT_EQ(on_device->figure, "2 operators, equal bits");
  const auto on_three = judge_operators(operators("a1", {"a1", "a1", "a1"}));
  EXPECT_EQ(on_three->health, Health::kPassed);
  EXPECT_EQ(on_three->figure, "2 operators on each of 3, equal bits");
}

TEST(DoctorsOperators, FailByNameWhereTheirBitsDiffer) {
  expect_failed(*judge_operators(operators("a3")), "on the CPU these have other bits than they should: gelu_");
  expect_failed(*judge_operators(operators("a1", {"a1", "a3"})),
                "on cuda:1 these have other bits than on the CPU: gelu_");
  expect_failed(*judge_operators(parsed(R"({"cpu": []})")), "there is none");
  const std::string cpu = R"({"cpu": [{"name": "a", "bits": "1", "known": "1"}], "devices": [)";
  expect_failed(*judge_operators(parsed(cpu + "]}")), "no device has run them");
  expect_failed(*judge_operators(parsed(cpu + R"({"device": "cuda:2", "operators": []}]})")),
                "cuda:2 has not run all of them");
  expect_failed(*judge_operators(parsed(cpu + R"({"device": "cuda:2", "error": "it has fallen off the bus"}]})")),
                "cuda:2: it has fallen off the bus");
}

// Of one device, without the end.
std::string figures(const std::string& device, const std::string& precision, const std::string& against,
                    const std::string& distance) {
  return R"({"device": ")" + device + R"(", "family": "gpt", "precision": ")" + precision + R"(", "against": ")" +
         against + R"(", "distance": )" + distance + R"(, "loss": 6, "expected_loss": 6)";
}

Json block(const std::string& precision, const std::string& against, const std::string& distance,
           const std::string& repeats = "true", const std::string& finite = "true") {
  return parsed(R"({"blocks": [)" + figures("cuda:0", precision, against, distance) + R"(, "repeats": )" + repeats +
                R"(, "finite": )" + finite + R"(, "differs_from": ""}]})");
}

Check only_block(const Json& answer) {
  const auto checks = judge_blocks(answer);
  EXPECT_TRUE(checks.ok() && checks->size() == 1);
  return checks->front();
}

TEST(DoctorsBlocks, MayBeOffByWhatTheirPrecisionCosts) {
  EXPECT_EQ(only_block(block("fp32", "cpu", "0.00009")).health, Health::kPassed);
  expect_failed(only_block(block("fp32", "cpu", "0.00011")), "off the CPU");
  EXPECT_EQ(only_block(block("bf16", "cpu", "0.029")).health, Health::kPassed);
  expect_failed(only_block(block("bf16", "cpu", "0.031")), "0.031 off the CPU, which is more than 0.03");
  EXPECT_EQ(only_block(block("fp32", "differences", "0.0099")).health, Health::kPassed);
  expect_failed(only_block(block("fp32", "differences", "0.0101")), "off differences of the loss");
  EXPECT_EQ(only_block(block("bf16", "fp32", "0.029")).health, Health::kPassed);
  expect_failed(only_block(block("bf16", "fp32", "0.031")), "off fp32");
}

TEST(DoctorsBlocks, FailIfBitsDoNotRepeatOrNothingIsFinite) {
  const Check differs = only_block(block("bf16", "cpu", "0.001", "false"));
  expect_failed(differs, "a second time it has other bits");
  EXPECT_EQ(differs.name, "block gpt bf16");
  expect_failed(only_block(block("bf16", "cpu", "null", "true", "false")), "not finite");
  expect_failed(only_block(block("bf16", "cpu", "null")), "no number off the CPU");
}

TEST(DoctorsBlocks, AreJudgedOnEachDeviceAndNameTheOneThatFailed) {
  const std::string well = R"(, "repeats": true, "finite": true, "differs_from": "")";
  const std::string other = R"(, "repeats": true, "finite": true, "differs_from": "cuda:0")";
  const std::string first = R"({"blocks": [)" + figures("cuda:0", "bf16", "cpu", "0.001") + well + "}, ";
  const auto both = only_block(parsed(first + figures("cuda:1", "bf16", "cpu", "0.002") + well + "}]}"));
  EXPECT_EQ(both.health, Health::kPassed);
  EXPECT_EQ(both.figure, "0.002 off the CPU, bits repeat, the worst of 2");
  expect_failed(only_block(parsed(first + figures("cuda:1", "bf16", "cpu", "0.2") + well + "}]}")),
                "on cuda:1 the gradient or the loss is 0.2 off the CPU");
  expect_failed(only_block(parsed(first + figures("cuda:1", "bf16", "cpu", "0.001") + other + "}]}")),
                "on cuda:1 it has other bits than cuda:0, which is of the same model");
  expect_failed(only_block(parsed(first + R"({"device": "cuda:1", "family": "gpt", "precision": "bf16",
                                             "error": "it has fallen off the bus"}]})")),
                "on cuda:1 it has fallen off the bus");
}

Json links(const std::string& of_second) {
  return parsed(R"({"links": [
    {"kind": "unix", "from": "cuda:0", "to": "cuda:1", "gb_per_s": 5.5, "latency_us": 20, "intact": true},
    {"kind": "unix", "from": "cuda:1", "to": "cuda:0", )" +
                of_second + R"(}],
    "not_checked": [{"kind": "nccl", "reason": "this build has no NCCL"}],
    "failed": [{"kind": "tls", "from": "cuda:0", "to": "cuda:1", "reason": "no certificate"}]})");
}

TEST(DoctorsLinks, HaveTheFiguresOfTheSlowestPair) {
  const auto checks = judge_links(links(R"("gb_per_s": 2.25, "latency_us": 31.4, "intact": true)"));
  ASSERT_EQ(checks->size(), 3U);
  EXPECT_EQ((*checks)[0].health, Health::kPassed);
  EXPECT_EQ((*checks)[0].figure, "2.25 GB/s, 31 us, the slowest of 2");
  expect_failed((*checks)[1], "from cuda:0 to cuda:1: no certificate");
  EXPECT_EQ((*checks)[2].health, Health::kNotChecked);
  EXPECT_EQ((*checks)[2].reason, "this build has no NCCL");
}

TEST(DoctorsLinks, FailByPairIfTheyAreSlowOrBytesAreWrong) {
  const auto slow = judge_links(links(R"("gb_per_s": 0.004, "latency_us": 31, "intact": true)"));
  expect_failed(slow->front(), "from cuda:1 to cuda:0 0.004 GB/s");
  const auto wrong = judge_links(links(R"("gb_per_s": 5, "latency_us": 31, "intact": false)"));
  expect_failed(wrong->front(), "from cuda:1 to cuda:0 other bytes come than were sent");
}

TEST(DoctorsLinks, ThatFailedOrWereMeasuredAreNotCalledNotChecked) {
  const std::string missing = R"("not_checked": [{"kind": "nccl", "reason": "cannot use GPU 2"}], )";
  const std::string measured = R"({"kind": "nccl", "from": "cuda:0", "to": "cuda:1", "gb_per_s": 9, "latency_us": 9,
                                   "intact": true})";
  const std::string failed = R"({"kind": "nccl", "from": "cuda:1", "to": "cuda:2", "reason": "no word for 30 s"})";
  const auto judged = [&](const std::string& links, const std::string& failures) {
    return judge_links(parsed("{" + missing + R"("links": [)" + links + R"(], "failed": [)" + failures + "]}"))
        ->front();
  };
  expect_failed(judged("", failed), "no word for 30 s");
  expect_failed(judged(measured, failed), "no word for 30 s");
  EXPECT_EQ(judged(measured, "").health, Health::kPassed);
  EXPECT_EQ(judged("", "").health, Health::kNotChecked);
}

TEST(DoctorsAnswers, ThatSaySomethingElseAreRefused) {
  for (const char* text : {"{}", R"({"cpu": [{"name": "gelu_"}], "blocks": [{}], "links": [{"kind": "unix"}]})"}) {
    EXPECT_FALSE(judge_operators(parsed(text)).ok());
    EXPECT_FALSE(judge_blocks(parsed(text)).ok());
    EXPECT_FALSE(judge_links(parsed(text)).ok());
  }
}

TEST(DoctorsRuns, PassOnlyIfAllTensorsAreEqual) {
  EXPECT_EQ(judge_bits({.tensors = 1200}).figure, "1,200 of 1,200 tensors equal");
  EXPECT_EQ(judge_bits({.tensors = 1200}).health, Health::kPassed);
  expect_failed(judge_bits({.tensors = 12, .different = {"wte", "wpe", "h.0", "h.1"}}),
                "4 differ in some bit, such as wte, wpe, h.0");
  expect_failed(judge_bits({}), "nothing to compare");
}

TEST(DoctorsMemory, MayBeOffByAQuarterOrByWhatIsNoise) {
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  EXPECT_EQ(judge_memory(5 * kGib, 4 * kGib).health, Health::kPassed);
  expect_failed(judge_memory(5 * kGib + 1, 4 * kGib), "5120 MiB were taken on the fullest worker");
  expect_failed(judge_memory(3 * kGib - 1, 4 * kGib), "the planner reckons with 4096 MiB");
  EXPECT_EQ(judge_memory(kMemoryNoise + 100, 100).health, Health::kPassed);
  expect_failed(judge_memory(0, 100), "nobody said");
}

TEST(DoctorsThroughput, IsAtLeastHalfOfThePrediction) {
  EXPECT_EQ(judge_speed(5000, 10000, {}).health, Health::kPassed);
  EXPECT_EQ(judge_speed(20000, 10000, {}).health, Health::kPassed);
  expect_failed(judge_speed(4900, 10000, {}), "0.49 of the speed");
  expect_failed(judge_speed(4900, 0, {}), "0.00 of the speed");
}

TEST(DoctorsThroughput, FailsByNameWhereADeviceIsMuchSlowerThanTheOthers) {
  EXPECT_EQ(judge_speed(9000, 10000, {{"cuda:0", 10}, {"cuda:1", 19}}).health, Health::kPassed);
  expect_failed(judge_speed(9000, 10000, {{"cuda:0", 10}, {"cuda:1", 31}}),
                "cuda:1 takes 3.1 times as long for the blocks as cuda:0");
}

chaos::RunReport recovered() {
  chaos::RunReport report;
  report.findings = {{chaos::Promise::kLive, true, "a new checkpoint after 0.3 s"},
                     {chaos::Promise::kOnce, true, "each minibatch once"},
                     {chaos::Promise::kBits, true, "all bits equal"},
                     {chaos::Promise::kBound, true, "as it should be"}};
  return report;
}

TEST(DoctorsRecovery, PassesIfThePromisesHold) {
  const Check check = judge_recovery(recovered(), "trains again after 0.21s");
  EXPECT_EQ(check.health, Health::kPassed);
  EXPECT_EQ(check.figure, "trains again after 0.21s");
}

TEST(DoctorsRecovery, FailsWithEachPromiseThatIsBroken) {
  for (std::size_t broken = 0; broken < 3; ++broken) {
    chaos::RunReport report = recovered();
    report.findings[broken].holds = false;
    report.findings[broken].text = "no two new checkpoints";
    expect_failed(judge_recovery(report, "0.21s"), ": no two new checkpoints");
  }
  expect_failed(judge_recovery(recovered(), std::nullopt), "no generation without the killed worker began");
  expect_failed(judge_recovery({}, "0.21s"), "nothing was found out");
}

TEST(DoctorsRecovery, TellsWhatIsLeftOverAndDoesNotJudgeIt) {
  chaos::RunReport report = recovered();
  report.findings[3].holds = false;
  EXPECT_EQ(judge_recovery(report, "0.21s").health, Health::kPassed);
}

}  // namespace
}  // namespace everstep::launcher::doctor
