#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tidy/tidy_rules.h"

namespace everstep::tidy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

auto violation(const std::string& path, int line, const std::string& part_of_message) {
  return AllOf(Field(&Violation::path, path), Field(&Violation::line, line),
               Field(&Violation::message, HasSubstr(part_of_message)),
               Field(&Violation::message, HasSubstr("(hint: ")));
}

SourceFile including(const std::string& path, const std::string& header) {
  return {path, "\n#include " + header + "\n"};
}

TEST(IncludeGraph, AllowsWhatTheTableAllows) {
  for (const auto& [from, header] : std::vector<std::pair<std::string, std::string>>{
           {"base/ids.cpp", "\"base/ids.h\""},
           {"scheduler/plan.h", "\"base/result.h\""},
           {"scheduler/orders/amdp.cpp", "\"scheduler/op.h\""},
           {"storage/json/json_text.cpp", "\"storage/manifest.h\""},
           {"elastic/brain/coordinator.h", "\"scheduler/plan.h\""},
           {"trainer/checkpoints/restore.cpp", "\"storage/manifest.h\""},
           {"trainer/loop/worker.h", "\"trainer/recovery/group_stop.h\""},
           {"launcher/worker/stage_hooks.cpp", "\"trainer/torch/stage_executor.h\""},
           {"launcher/job/train_request.h", "\"launcher/cli/options.h\""},
           {"launcher/main.cpp", "\"launcher/commands/commands.h\""},
           {"tests/storage/json/json_text_test.cpp", "\"storage/json/json_text.h\""},
           {"tests/storage/json/json_text_test.cpp", "\"tests/temporary_directory.h\""},
           {"bench/plan_bench.cpp", "\"scheduler/plan.h\""},
       }) {
    EXPECT_THAT(check_include_graph(including(from, header)), IsEmpty()) << from;
  }
}

TEST(IncludeGraph, ForbidsEveryArrowAgainstTheTable) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"base", "scheduler"},
           {"scheduler", "storage"},
           {"scheduler", "scheduler/orders"},
           {"scheduler/orders", "scheduler/draw"},
           {"storage", "scheduler"},
           {"elastic", "storage"},
           {"elastic", "elastic/brain"},
           {"elastic/brain", "trainer/loop"},
           {"trainer/loop", "elastic"},
           {"trainer/update", "trainer/loop"},
           {"trainer/checkpoints", "trainer/loop"},
           {"trainer/checkpoints", "launcher/cli"},
           {"launcher/cli", "launcher/job"},
           {"launcher/job", "launcher/worker"},
           {"launcher/job", "launcher/checkpoint"},
           {"launcher/worker", "launcher/supervise"},
           {"launcher/status", "launcher/supervise"},
           {"launcher/supervise", "launcher/rehearse/chaos"},
           {"launcher/rehearse/chaos", "launcher/rehearse/trace"},
           {"launcher/rehearse/trace", "launcher/commands"},
           {"launcher/proof", "launcher/commands"},
           {"launcher", "tests"},
           {"bench", "tests"},
       }) {
    const SourceFile file = including(from + "/a.cpp", "\"" + to + "/b.h\"");
    EXPECT_THAT(check_include_graph(file), ElementsAre(violation(file.path, 2, from + " may not include " + to)));
  }
}

TEST(IncludeGraph, WantsEveryFileInARoom) {
  for (const std::string folder : {"trainer", "trainer/misc", "launcher/misc", "base/more"}) {
    EXPECT_THAT(check_include_graph({folder + "/a.cpp", ""}),
                ElementsAre(violation(folder + "/a.cpp", 0, folder + " is no room")));
    EXPECT_THAT(check_include_graph(including("launcher/main.cpp", "\"" + folder + "/a.h\"")),
                ElementsAre(violation("launcher/main.cpp", 2, "does not start with a room")));
  }
}

TEST(IncludeGraph, WantsIncludesFromTheRoot) {
  EXPECT_THAT(check_include_graph(including("scheduler/plan.cpp", "\"plan.h\"")),
              ElementsAre(violation("scheduler/plan.cpp", 2, "write includes from the root")));
}

TEST(IncludeGraph, KeepsAdaptersBehindTheirPorts) {
  const std::string adapter = "\"storage/hdf5/open_tensor_file.h\"";
  for (const std::string from :
       {"storage/manifest.cpp", "storage/json/json_text.cpp", "trainer/loop/train_loop.cpp", "trainer/data/a.cpp"}) {
    EXPECT_THAT(check_include_graph(including(from, adapter)),
                ElementsAre(violation(from, 2, "only launcher may include the adapter storage/hdf5")));
  }
  EXPECT_THAT(check_include_graph(including("storage/hdf5/image.cpp", adapter)), IsEmpty());
  EXPECT_THAT(check_include_graph(including("launcher/main.cpp", adapter)), IsEmpty());
}

TEST(IncludeGraph, TakesThePortsOfConnectorsForNoAdapter) {
  for (const std::string from :
       {"trainer/wire/frame.cpp", "trainer/nccl/session.cpp", "trainer/socket/tls/tls_stream.cpp"}) {
    EXPECT_THAT(check_include_graph(including(from, "\"trainer/wire/byte_codec.h\"")), IsEmpty()) << from;
  }
  EXPECT_THAT(check_include_graph(including("trainer/wire/peer_connector.h", "\"trainer/socket/dialer.h\"")),
              ElementsAre(violation("trainer/wire/peer_connector.h", 2, "the adapter trainer/socket")));
}

TEST(ForeignHeaders, AreFineAtHomeAndInTheMirrorOfHome) {
  for (const auto& [path, header] : std::vector<std::pair<std::string, std::string>>{
           {"storage/json/json_text.cpp", "<nlohmann/json.hpp>"},
           {"tests/storage/json/json_text_test.cpp", "<nlohmann/json.hpp>"},
           {"launcher/cli/options.cpp", "<cxxopts.hpp>"},
           {"launcher/supervise/supervisor.cpp", "<sys/wait.h>"},
           {"trainer/socket/dialing.cpp", "<netinet/tcp.h>"},
           {"trainer/socket/tls/tls_stream.cpp", "<openssl/ssl.h>"},
           {"trainer/xxhash/byte_hash.cpp", "<xxh_x86dispatch.h>"},
           {"tests/accelerator/fake_device.cpp", "<c10/core/Device.h>"},
           {"trainer/cuda/kernels.cu", "<cuda_runtime_api.h>"},
           {"tests/toolchain/libtorch_test.cpp", "<ATen/Functions.h>"},
           {"tests/base/ids_test.cpp", "<rapidcheck/gtest.h>"},
           {"bench/plan_bench.cpp", "<benchmark/benchmark.h>"},
           {"scheduler/plan.cpp", "<vector>"},
       }) {
    EXPECT_THAT(check_foreign_headers(including(path, header)), IsEmpty()) << path;
  }
}

TEST(ForeignHeaders, AreRefusedAwayFromHomeWithTheAddressOfHome) {
  for (const auto& [header, home] : std::vector<std::pair<std::string, std::string>>{
           {"<nlohmann/json.hpp>", "storage/json/"},
           {"<hdf5.h>", "storage/hdf5/"},
           {"<openssl/evp.h>", "storage/openssl/ or trainer/socket/tls/"},
           {"<grpcpp/grpcpp.h>", "elastic/etcd/ or elastic/etcd_cpp_api/"},
           {"<google/protobuf/message.h>", "elastic/etcd/ or elastic/etcd_cpp_api/"},
           {"<etcd/SyncClient.hpp>", "elastic/etcd_cpp_api/"},
           {"<torch/torch.h>",
            "trainer/torch/ or trainer/cuda/ or tests/accelerator/ or tests/cuda_runtime/ or tests/toolchain/"},
           {"<xxhash.h>", "trainer/xxhash/"},
           {"<cuda_runtime.h>", "trainer/cuda/ or trainer/nccl/ or tests/cuda_runtime/"},
           {"<cxxopts.hpp>", "launcher/cli/options.cpp"},
           {"<spdlog/spdlog.h>", "launcher/"},
           {"<gtest/gtest.h>", "tests/ or bench/"},
           {"<benchmark/benchmark.h>", "tests/ or bench/"},
           {"<unistd.h>", "storage/posix/"},
       }) {
    EXPECT_THAT(check_foreign_headers(including("scheduler/plan.cpp", header)),
                ElementsAre(violation("scheduler/plan.cpp", 2, header + " may be included in " + home)));
  }
}

TEST(ForeignHeaders, UnknownOnesNeedADecision) {
  for (const std::string header : {"<boost/asio.hpp>", "<stdio.h>"}) {
    EXPECT_THAT(check_foreign_headers(including("launcher/main.cpp", header)),
                ElementsAre(violation("launcher/main.cpp", 2, header + " is not known here")));
  }
}

TEST(CorePurity, BansHeadersThatAct) {
  for (const std::string header :
       {"<thread>", "<mutex>", "<fstream>", "<cstdio>", "<iostream>", "<random>", "<ctime>", "<unordered_map>"}) {
    EXPECT_THAT(check_core_purity(including("scheduler/plan.cpp", header)),
                ElementsAre(violation("scheduler/plan.cpp", 2, header + " has no place in a core file")));
  }
}

TEST(CorePurity, HoldsInEveryRoomOfACoreAndInNewFolders) {
  for (const std::string room :
       {"base", "scheduler", "scheduler/orders", "scheduler/draw", "storage", "elastic", "elastic/brain", "elastic/sim",
        "trainer/model", "trainer/wire", "trainer/update", "trainer/checkpoints", "trainer/recovery", "trainer/loop",
        "trainer/reference", "trainer", "trainer/misc"}) {
    EXPECT_THAT(check_core_purity(including(room + "/a.cpp", "<thread>")),
                ElementsAre(violation(room + "/a.cpp", 2, "<thread> has no place in a core file")));
  }
}

TEST(CorePurity, BansWordsThatActWhereTheHeaderAloneIsInnocent) {
  for (const std::string word : {"getenv", "steady_clock", "system_clock", "sleep_for", "thread_local"}) {
    const SourceFile file{"elastic/brain/coordinator.cpp",
                          "// " + word + " is only mentioned here\nauto x = std::" + word + ";\n"};
    EXPECT_THAT(check_core_purity(file), ElementsAre(violation(file.path, 2, word + " has no place in a core file")));
  }
}

TEST(CorePurity, KnowsAWordFromAPartOfAWord) {
  EXPECT_THAT(check_core_purity({"scheduler/plan.cpp", "int operand, rand_seed, my_rand;\n"}), IsEmpty());
  EXPECT_THAT(check_core_purity({"scheduler/plan.cpp", "int operand = rand();\n"}),
              ElementsAre(violation("scheduler/plan.cpp", 1, "rand has no place")));
}

TEST(CorePurity, LeavesTheShellAlone) {
  for (const std::string path :
       {"launcher/main.cpp", "launcher/worker/member_loop.cpp", "storage/posix/file_system.cpp",
        "trainer/socket/tls/tls_stream.cpp", "tests/base/ids_test.cpp"}) {
    EXPECT_THAT(check_core_purity(including(path, "<cstdio>")), IsEmpty()) << path;
  }
}

TEST(CorePurity, HasFewExceptions) {
  for (const std::string path :
       {"base/check.cpp", "trainer/wire/lifeline_news.h", "trainer/checkpoints/checkpoint_committer.cpp",
        "trainer/checkpoints/checkpoint_committer.h", "trainer/checkpoints/checkpoint_writer.cpp",
        "trainer/checkpoints/checkpoint_writer.h", "trainer/checkpoints/parallel.cpp"}) {
    EXPECT_THAT(check_core_purity(including(path, "<thread>")), IsEmpty()) << path;
  }
  for (const std::string path : {"trainer/checkpoints/commit_assembly.cpp", "trainer/checkpoints/restore.cpp",
                                 "trainer/checkpoints/parallel.h", "trainer/wire/transport.h"}) {
    EXPECT_THAT(check_core_purity(including(path, "<thread>")), Not(IsEmpty())) << path;
  }
}

TEST(ToolchainTraps, AreNamedBeforeTheLinterStumbles) {
  EXPECT_THAT(check_toolchain_traps(including("launcher/main.cpp", "<ranges>")),
              ElementsAre(violation("launcher/main.cpp", 2, "<ranges> does not work")));
  EXPECT_THAT(check_toolchain_traps(including("tests/base/ids_test.cpp", "<ranges>")), IsEmpty());
}

}  // namespace
}  // namespace everstep::tidy
