#include "launcher/doctor/report.h"

#include <gmock/gmock.h>

#include "base/version.h"

namespace everstep::launcher::doctor {
namespace {

using storage::Json;
using testing::HasSubstr;

Report examined() {
  Report report;
  report.device = "cuda";
  report.seconds = 48.4;
  report.host.set("system", "Linux");
  report.checks = {checked("operators", "14 operators, equal bits", "the CPU's bits", ""),
                   checked("link tls", "0.01 GB/s", "0.05 GB/s", "from cuda:0 to cuda:1 0.010 GB/s"),
                   not_checked("link nccl", "this build has no NCCL")};
  return report;
}

TEST(DoctorsReport, HasARowForEachCheckAndSaysWhyOneFailed) {
  Report report = examined();
  report.files = "/tmp/somewhere";
  EXPECT_EQ(report_text(report, 0),
            "check      result       figure                    limit\n"
            "---------  -----------  ------------------------  --------------\n"
            "operators  passed       14 operators, equal bits  the CPU's bits\n"
            "link tls   FAILED       0.01 GB/s                 0.05 GB/s\n"
            "link nccl  not checked  this build has no NCCL\n"
            "\n"
            "link tls: from cuda:0 to cuda:1 0.010 GB/s\n"
            "files are in /tmp/somewhere\n"
            "FAILED: link tls (1 of 2 checks on cuda, 1 not checked)\n");
}

TEST(DoctorsReport, PassesIfNothingHasFailed) {
  Report report = examined();
  report.checks.erase(report.checks.begin() + 1);
  EXPECT_FALSE(report.has_failed());
  EXPECT_EQ(verdict(report), "passed: 1 check on cuda in 48 s, 1 not checked");
  report.checks.pop_back();
  EXPECT_EQ(verdict(report), "passed: 1 check on cuda in 48 s");
}

TEST(DoctorsReport, HasInJsonAllThatIsKnown) {
  Report report = examined();
  report.checks[1].facts.set("pairs", 3);
  report.checks[1].logs = {{"links.log", "the end"}};
  const Json json = report_json(report);
  EXPECT_EQ(*json.find("passed"), Json(false));
  EXPECT_EQ(*json.find("everstep"), Json(kVersion));
  EXPECT_EQ(*json.find("host")->find("system"), Json("Linux"));
  const auto& checks = std::get<Json::Array>(json.find("checks")->value());
  ASSERT_EQ(checks.size(), 3U);
  EXPECT_EQ(*checks[1].find("result"), Json("FAILED"));
  EXPECT_EQ(*checks[1].find("facts")->find("pairs"), Json(3));
  EXPECT_EQ(*checks[1].find("logs")->find("links.log"), Json("the end"));
  EXPECT_EQ(*checks[2].find("reason"), Json("this build has no NCCL"));
}

}  // namespace
}  // namespace everstep::launcher::doctor
