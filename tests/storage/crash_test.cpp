#include <iostream>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "storage/openssl/openssl_hashing.h"
#include "tests/storage/crash_script.h"

namespace everstep::storage {
namespace {

constexpr std::uint64_t kSeeds = 3;

std::string describe(std::int64_t call, const CrashPolicy& policy) {
  return "crash at call " + std::to_string(call) + ", bytes " + std::to_string(static_cast<int>(policy.bytes)) +
         ", names " + std::to_string(static_cast<int>(policy.names)) + ", seed " + std::to_string(policy.seed);
}

// One number for all that is on a disk, so that states that many policies lead to are checked once.
std::string fingerprint(const CrashFileSystem& files) {
  const auto hasher = make_openssl_hashing()->sha256();
  for (const std::string& path : files.all_files()) {
    hasher->add(std::as_bytes(std::span(path)));
    const std::vector<std::byte> content = files.content(path);
    const std::uint64_t size = content.size();
    hasher->add(std::as_bytes(std::span(&size, 1)));
    hasher->add(content);
  }
  return to_string(hasher->finish());
}

TEST(CrashPoints, EveryCallUnderEveryPolicyLeavesTheNewestCommittedCheckpoint) {
  CrashFileSystem whole;
  ASSERT_EQ(run_script(whole).size(), 6U);
  std::int64_t points = 0;
  std::set<std::pair<std::size_t, std::string>> seen;
  for (std::int64_t call = 1; call <= whole.calls(); ++call) {
    CrashFileSystem files;
    files.faults.crash_at_call = call;
    const Acknowledged acknowledged = run_script(files);
    for (const CrashPolicy& policy : crash_policies(kSeeds)) {
      const auto after = files.after_crash(policy);
      ++points;
      if (!seen.insert({acknowledged.size(), fingerprint(*after)}).second) continue;
      const auto wrong = violation(*after, acknowledged);
      ASSERT_FALSE(wrong) << describe(call, policy) << ": " << *wrong;
    }
  }
  std::cout << whole.calls() << " calls, " << points << " crash points, " << seen.size() << " different states\n";
}

TEST(CrashPoints, WhatTheNextProcessCommitsIsDurableThoughItFoundNamesThatWereNot) {
  CrashFileSystem whole;
  run_script(whole);
  for (std::int64_t call = 1; call <= whole.calls(); ++call) {
    CrashFileSystem dying;
    dying.faults.crash_at_call = call;
    run_script(dying);
    const auto next = dying.copy();
    TestJob job(*next);
    const auto saved = resume_and_save(job);
    ASSERT_TRUE(saved.ok()) << "process died at call " << call << ": " << saved.error();
    const auto wrong = violation(*next->after_crash({}), {*saved});
    ASSERT_FALSE(wrong) << "process died at call " << call << ", then power was cut: " << *wrong;
  }
}

}  // namespace
}  // namespace everstep::storage
