#include "launcher/job/device_options.h"

#include <gmock/gmock.h>

#include "launcher/job/device_environment.h"
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

TEST(Transport, IsOneOfThree) {
  EXPECT_EQ(transport_of({"--workers=1"}), "auto");
  EXPECT_EQ(transport_of({"--workers=1", "--transport=nccl"}), "nccl");
  EXPECT_EQ(transport_of({"--workers=1", "--transport=host"}), "host");
  EXPECT_EQ(transport_of({"--workers=1", "--transport=ucx"}),
            "--transport=ucx: is no transport (hint: use nccl, host or auto)");
}

TEST(DeviceVariables, AreThoseOfCudaAndOfTheNetwork) {
  const auto text = [](const DeviceVariables& variables) {
    std::string all;
    for (const auto& [name, value] : variables) all += name + "=" + value + " ";
    return all;
  };
  const auto at = [](const std::string& bind, const std::string& advertise = "") {
    WireOptions wire;
    wire.bind = bind;
    wire.advertise = advertise;
    return wire;
  };
  const std::string cuda = "CUBLAS_WORKSPACE_CONFIG=:4096:8 CUDA_DEVICE_MAX_CONNECTIONS=32 CUDA_MODULE_LOADING=EAGER ";
  EXPECT_EQ(text(device_variables("cpu", "auto", {})), "");
  EXPECT_EQ(text(device_variables("cuda", "host", {})), cuda);
  EXPECT_EQ(text(device_variables("cuda", "nccl", {})), cuda + "NCCL_SOCKET_IFNAME==lo ");
  EXPECT_EQ(text(device_variables("cuda", "auto", at("0.0.0.0", "127.0.0.1"))), cuda + "NCCL_SOCKET_IFNAME==lo ");
  EXPECT_EQ(text(device_variables("cuda", "auto", at("192.0.2.1"))), cuda) << "no interface has it";
}

}  // namespace
}  // namespace everstep::launcher
