#include "launcher/job/resume_command.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

std::string command_for(std::vector<std::string> args) {
  args.emplace_back("--workers=2");
  return resume_command(train_config(args));
}

TEST(ResumeCommand, NamesTheCheckpointsOfTheJob) {
  EXPECT_EQ(command_for({"--checkpoint-dir=/shared/checkpoints", "--job=first"}),
            "everstep resume --from=/shared/checkpoints/first");
}

TEST(ResumeCommand, ShowsPathsFromTheWorkingDirectory) {
  EXPECT_EQ(command_for({"--checkpoint-dir=runs/x/checkpoints"}), "everstep resume --from=runs/x/checkpoints/job");
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(command_for({"--checkpoint-dir=" + here + "/saves/"}), "everstep resume --from=saves/job");
}

TEST(ResumeCommand, RepeatsWhatNoCheckpointStores) {
  EXPECT_EQ(command_for({"--checkpoint-dir=/c", "--etcd=https://a:2379,https://b:2379", "--etcd-ca=my ca.pem",
                         "--secret-file=it's", "--bind=::", "--advertise=fd00::7", "--wire=tcp", "--tls-ca=ca.pem",
                         "--tls-cert=c.pem", "--tls-key=k.pem", "--etcd-plain-text", "--lr=1", "--output=/o"}),
            "everstep resume --from=/c/job --secret-file='it'\\''s' --etcd=https://a:2379,https://b:2379 "
            "--etcd-ca='my ca.pem' --etcd-plain-text=true --bind=:: --advertise=fd00::7 --wire=tcp --tls-ca=ca.pem "
            "--tls-cert=c.pem --tls-key=k.pem");
}

TEST(ShellWord, IsOneWord) {
  EXPECT_EQ(shell_word("runs/a-1.b"), "runs/a-1.b");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
}

}  // namespace
}  // namespace everstep::launcher
