#include "launcher/doctor/host.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>

#include "launcher/cli/build_facts.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher::doctor {
namespace {

using storage::Json;

TEST(DoctorsHost, HasTheVariablesThatWorkersSetAsWorkersHaveThem) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
  ::unsetenv("CUDA_MODULE_LOADING");
  const Json variables = worker_variables("cuda");
  EXPECT_EQ(*variables.find("CUDA_DEVICE_MAX_CONNECTIONS"), Json("8"));
  EXPECT_EQ(*variables.find("CUDA_MODULE_LOADING"), Json("EAGER"));
  EXPECT_NE(variables.find("NCCL_SOCKET_IFNAME"), nullptr);
  EXPECT_EQ(worker_variables("cpu"), Json::object());
}

TEST(DoctorsHost, SaysHowTheProgramWasBuiltAndWhichEtcdThereIs) {
  const TemporaryDirectory directory;
  tell_build({"0123456789ab", "release", "Release", "GNU 12.2.0", "-O3"});
  const Json host = host_json(directory.path());
  EXPECT_EQ(*host.find("build")->find("commit"), Json("0123456789ab"));
  EXPECT_EQ(*host.find("build")->find("preset"), Json("release"));
  EXPECT_EQ(*host.find("build")->find("flags"), Json("-O3"));
  EXPECT_THAT(to_text(*host.find("etcd")), testing::StartsWith("\"etcd Version: "));
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(*host_json(directory.path()).find("etcd"), Json(nullptr));
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace everstep::launcher::doctor
