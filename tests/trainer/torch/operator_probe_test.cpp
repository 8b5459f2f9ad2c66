#include "trainer/torch/operator_probe.h"

#include <set>

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace everstep::trainer {
namespace {

TEST(OperatorProbe, FindsTheKnownBitsOnTheCpu) {
  const auto all = probe_operators("cpu", 0);
  ASSERT_TRUE(all.ok()) << all.error().line();
  for (const OperatorBits& one : *all) {
    EXPECT_EQ(hex_text(one.bits), hex_text(one.known)) << one.name;
  }
}

TEST(OperatorProbe, RunsEveryOperatorThatHasTheSameBitsEverywhere) {
  std::set<std::string> registered;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string prefix = "everstep::";
    if (name.name.starts_with(prefix)) registered.insert(name.name.substr(prefix.size()));
  }
  std::set<std::string> probed{"add_product_", "attend_", "attend_backward_", "multiply_"};  // the others
  const auto all = probe_operators("cpu", 0).value();
  for (const OperatorBits& one : all) probed.insert(one.name);
  EXPECT_EQ(probed, registered);
}

TEST(OperatorProbe, SaysThatADeviceFails) {
  const auto all = probe_operators("cuda", 0);
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.error().message.find("add_sums_: "), std::string::npos) << all.error().line();
}

}  // namespace
}  // namespace everstep::trainer
