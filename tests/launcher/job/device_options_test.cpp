#include "launcher/job/device_options.h"

#include <gmock/gmock.h>

#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

TEST(DeviceName, IsAKindAndPerhapsANumber) {
  EXPECT_EQ(*parse_device("cpu"), (DeviceName{"cpu"}));
  EXPECT_EQ(*parse_device("auto"), (DeviceName{"auto"}));
  EXPECT_EQ(*parse_device("cuda"), (DeviceName{"cuda"}));
  EXPECT_EQ(*parse_device("cuda:11"), (DeviceName{"cuda", 11}));
}

TEST(DeviceName, IsNothingElse) {
  for (const char* text : {"", ":", ":1", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2", "cuda:99999999999", "cpu:0",
                           "auto:1", "CUDA", "cuda 1", "cuda:+1"}) {
    const auto device = parse_device(text);
    ASSERT_FALSE(device) << text;
    EXPECT_EQ(device.error().hint, "use cpu, cuda, cuda:N or auto");
  }
}

std::string transport_of(const std::vector<std::string>& args) {
  std::string transport;
  const Outcome failure = read_transport(train_config(args), transport);
  return failure ? failure->error.line() : transport;
}

TEST(Transport, IsTheHostsWireWhateverIsAskedFor) {
  EXPECT_EQ(transport_of({"--workers=1"}), "host");
  EXPECT_EQ(transport_of({"--workers=1", "--transport=auto"}), "host");
  EXPECT_EQ(transport_of({"--workers=1", "--transport=host"}), "host");
}

TEST(Transport, IsRefusedIfNoProgramHasIt) {
  EXPECT_EQ(transport_of({"--workers=1", "--transport=nccl"}),
            "--transport=nccl: no program uses NCCL yet (hint: use host or auto)");
  EXPECT_EQ(transport_of({"--workers=1", "--transport=ucx"}),
            "--transport=ucx: is no transport (hint: use host or auto)");
}

}  // namespace
}  // namespace everstep::launcher
