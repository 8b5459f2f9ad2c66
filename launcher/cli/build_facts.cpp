#include "launcher/cli/build_facts.h"

#include <utility>

namespace everstep::launcher {
namespace {

BuildFacts& told_facts() {
  static BuildFacts facts;
  return facts;
}

}  // namespace

void tell_build(BuildFacts facts) { told_facts() = std::move(facts); }

const BuildFacts& build_facts() { return told_facts(); }

}  // namespace everstep::launcher
