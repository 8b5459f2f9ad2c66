#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/launcher/supervise/checkpoint_program.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

constexpr const char* kPlan[] = {"--workers=2", "--schedule=1f1b", "--depth=2"};

class ProofProgram : public CheckpointProgram {
 protected:
  ProofProgram() {
    const Ended ended = run_program(with(kPlan, {"--steps=6", "--checkpoint-every=3"}));
    EXPECT_EQ(ended.exit_code, 0) << ended.log;
  }

  Ended proof(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{name, path("saves")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  void append_to(const std::string& document) const {
    std::ofstream(path("saves/job/" + document), std::ios::app) << " ";
  }
};

TEST_F(ProofProgram, ReplayComparesSomethingOrSaysThatItCannot) {
  const Ended whole = proof("replay");
  EXPECT_EQ(whole.exit_code, 0) << whole.log;
  EXPECT_EQ(whole.out, "replay: from step 0 to step 6: 6 windows, 48 losses, 2 checkpoints: all bits equal\n");
  EXPECT_THAT(proof("replay", {"--from=4", "--to=100"}).out, HasSubstr("from step 3 to step 6: 3 windows"));
  const std::vector<std::vector<std::string>> nothing{{"--from=6"}, {"--from=3", "--to=3"}, {"--from=3", "--to=5"}};
  for (const auto& options : nothing) {
    const Ended ended = proof("replay", options);
    EXPECT_EQ(ended.exit_code, 64) << ended.out << ended.log;
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.log, HasSubstr("there is nothing to compare"));
  }
}

TEST_F(ProofProgram, AuditAndReplayEndWith65AtADamagedHead) {
  const auto all = checkpoints();
  ASSERT_EQ(all.size(), 2U);
  append_to(manifest_path(all[0].head.lineage, all[0].head.checkpoint, all[0].head.writer));
  for (const char* name : {"audit", "replay"}) {
    const Ended ended = proof(name);
    EXPECT_EQ(ended.exit_code, 65) << name << "\n" << ended.out << ended.log;
    EXPECT_THAT(ended.log, HasSubstr(to_string(all[0].manifest.name))) << name;
  }
  EXPECT_THAT(proof("replay", {"--to=3"}).out, HasSubstr("from step 0 to step 3: "));
}

}  // namespace
}  // namespace everstep::launcher
