#include "launcher/supervise/local_devices.h"

#include <sstream>

#include <gmock/gmock.h>

#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;
using Devices = std::vector<trainer::DeviceFacts>;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

Result<Devices> two_gpus(const std::string& kind) {
  if (kind != "cuda") return not_found("there is no " + kind);
  return Devices{{"large", 80 * kGib}, {"small", 40 * kGib}};
}

Result<Devices> no_gpu(const std::string& /*kind*/) { return not_found("no GPU was found", "look for it"); }

Result<Devices> must_not_ask(const std::string& kind) {
  ADD_FAILURE() << "asked for " << kind;
  return Devices{};
}

struct Found {
  Config config;
  LocalDevices devices;
  Outcome failure;
  std::string events;
};

Found find(const std::vector<std::string>& args, ListDevices list) {
  Found found{train_config(args), {}, {}, ""};
  std::ostringstream out;
  std::ostringstream err;
  Streams streams{out, err};
  found.failure = find_devices(found.config, list, streams, found.devices);
  found.events = err.str();
  return found;
}

std::string text_of(const Found& found, const std::string& name) {
  return found.config.setting(name).text.value_or("not set");
}

TEST(LocalDevices, AreNotLookedForOnTheCpu) {
  const Found one = find({"--workers=3"}, must_not_ask);
  EXPECT_FALSE(one.failure);
  EXPECT_EQ(one.devices, LocalDevices{});
  EXPECT_EQ(one.devices.device_of(2), "cpu");
  EXPECT_EQ(text_of(one, "memory-gib"), "not set");
  EXPECT_EQ(text_of(find({"--workers=auto"}, must_not_ask), "workers"), "1");
}

TEST(LocalDevices, AreOneForEachWorker) {
  const Found found = find({"--workers=auto", "--device=cuda"}, two_gpus);
  ASSERT_FALSE(found.failure);
  EXPECT_EQ(text_of(found, "workers"), "2");
  EXPECT_EQ(text_of(found, "device"), "cuda");
  EXPECT_EQ(found.devices.device_of(1), "cuda:1");
}

TEST(LocalDevices, GiveThePlannerWhatTheSmallestHas) {
  EXPECT_EQ(text_of(find({"--workers=1", "--device=cuda"}, two_gpus), "memory-gib"), "36");
  EXPECT_EQ(text_of(find({"--workers=1", "--device=cuda:0"}, two_gpus), "memory-gib"), "72");
  EXPECT_EQ(text_of(find({"--workers=1", "--device=cuda", "--memory-gib=7"}, two_gpus), "memory-gib"), "7");
}

TEST(LocalDevices, MayBeOneOfSeveral) {
  const Found found = find({"--workers=1", "--device=cuda:1"}, two_gpus);
  ASSERT_FALSE(found.failure);
  EXPECT_EQ(text_of(found, "device"), "cuda") << "which one is nobody else's business";
  EXPECT_EQ(found.devices.device_of(0), "cuda:1");
  EXPECT_THAT(find({"--workers=2", "--device=cuda:1"}, two_gpus).failure->error.message, HasSubstr("is one device"));
  EXPECT_THAT(find({"--workers=1", "--device=cuda:2"}, two_gpus).failure->error.message, HasSubstr("has 2 devices"));
}

TEST(LocalDevices, AreTakenByAutoIfThereAreAny) {
  const Found some = find({"--workers=auto", "--device=auto"}, two_gpus);
  EXPECT_EQ(text_of(some, "device"), "cuda");
  EXPECT_THAT(some.events, HasSubstr("event=device_chosen device=cuda name=large"));
  const Found none = find({"--workers=auto", "--device=auto"}, no_gpu);
  EXPECT_FALSE(none.failure);
  EXPECT_EQ(text_of(none, "device"), "cpu");
  EXPECT_EQ(text_of(none, "workers"), "1");
  EXPECT_THAT(none.events, HasSubstr("no GPU was found"));
}

TEST(LocalDevices, AreRefusedWhereThereAreNotEnough) {
  const Found none = find({"--workers=1", "--device=cuda"}, no_gpu);
  ASSERT_TRUE(none.failure);
  EXPECT_EQ(none.failure->exit_code, ExitCode::kUsage);
  EXPECT_EQ(none.failure->error.hint, "look for it");
  const Found few = find({"--workers=3", "--device=cuda"}, two_gpus);
  ASSERT_TRUE(few.failure);
  EXPECT_EQ(few.failure->exit_code, ExitCode::kUsage);
  EXPECT_EQ(few.failure->error.hint, "--workers=auto takes them all");
  EXPECT_TRUE(find({"--workers=1", "--device=cuda", "--emulate=1:2"}, must_not_ask).failure);
}

Result<Devices> two_without_nccl(const std::string& /*kind*/) {
  const trainer::DeviceFacts one{"plain", kGib, "this build has no NCCL"};
  return Devices{one, one};
}

TEST(LocalDevices, AreReachedByNcclOrNot) {
  EXPECT_FALSE(find({"--workers=2", "--device=cuda", "--transport=nccl"}, two_gpus).failure);
  const Found refused = find({"--workers=2", "--device=cuda", "--transport=nccl"}, two_without_nccl);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->exit_code, ExitCode::kUsage);
  EXPECT_EQ(refused.failure->error.line(), "--transport=nccl: this build has no NCCL (hint: use host or auto)");
  const Found any = find({"--workers=2", "--device=cuda"}, two_without_nccl);
  EXPECT_FALSE(any.failure);
  EXPECT_THAT(any.events, HasSubstr("event=transport_chosen transport=host reason=\"this build has no NCCL\""));
  EXPECT_EQ(find({"--workers=2", "--device=cuda", "--transport=host"}, two_without_nccl).events, "");
  const Found on_cpu = find({"--workers=2", "--transport=nccl"}, must_not_ask);
  ASSERT_TRUE(on_cpu.failure);
  EXPECT_THAT(on_cpu.failure->error.message, HasSubstr("this job computes on the CPU"));
}

std::vector<std::string> explained(const std::string& device, ListDevices list) {
  return explain_device(train_config({"--workers=1", "--device=" + device, "--transport=host"}), list);
}

TEST(LocalDevices, AreExplainedByTheVariablesThatTheirWorkersSet) {
  const std::vector<std::string> of_gpus = explained("cuda", must_not_ask);
  ASSERT_EQ(of_gpus.size(), 3U);
  EXPECT_EQ(of_gpus[1], "workers have CUDA_DEVICE_MAX_CONNECTIONS=32, unless it is set");
  EXPECT_EQ(explained("cuda:1", must_not_ask), of_gpus);
  EXPECT_EQ(explained("auto", two_gpus), of_gpus);
  EXPECT_EQ(explained("auto", no_gpu).size(), 0U);
  EXPECT_EQ(explained("cpu", must_not_ask).size(), 0U);
}

TEST(LocalDevices, AreReadFromWhatTheWorkerProgramPrints) {
  const auto devices = parse_device_list(
      "a library "
      "warns\n\n{\"devices\":[{\"name\":\"large\",\"memory_bytes\":5},{\"name\":\"\",\"memory_bytes\":0}]}\n");
  ASSERT_TRUE(devices) << devices.error();
  EXPECT_EQ(*devices, (Devices{{"large", 5}, {"", 0}}));
  EXPECT_EQ(parse_device_list("{\"devices\":[{\"name\":\"a\",\"memory_bytes\":5}],\"no_nccl\":\"none\"}").value(),
            (Devices{{"a", 5, "none"}}));
  EXPECT_EQ(parse_device_list("{\"error\":\"no GPU\",\"hint\":\"buy one\"}").error().line(),
            not_found("no GPU", "buy one").line());
  for (const char* text : {"", "\n", "error", "[]", "{}", "{\"devices\":[{}]}", "{\"devices\":7}"}) {
    EXPECT_EQ(parse_device_list(text).error().code, ErrorCode::kInternal) << text;
  }
}

TEST(LocalDevices, OfAProgramThatCannotStartAreAnErrorThatSaysWhy) {
  const auto devices =
      parse_device_list("warning\neverstep-worker: libcudart.so.13: cannot open shared object file\n", false);
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("cannot look for devices: everstep-worker: libcudart.so.13"));
  EXPECT_THAT(devices.error().hint, HasSubstr("docs/gpu.md"));
}

}  // namespace
}  // namespace everstep::launcher
