#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "tests/trainer/recovery/handover_chain.h"

namespace everstep::trainer {

// `count` workers' names from `first` on.
std::vector<int> names(int first, int count);

// Generations that nobody thought of: any plan of these kinds, any of the workers before at any place, some that only
// hand over, as many gone as can be spared, and a stop anywhere.
class RandomChain {
 public:
  RandomChain(std::uint64_t seed, std::vector<scheduler::ScheduleKind> kinds);

  TestGeneration next(const HandoverChain& chain);

 private:
  int below(int bound);
  TestGeneration any_plan();
  void choose_pipelines(TestGeneration& next);
  void choose_provisional(TestGeneration& next, int window);
  void take_places(TestGeneration& next, std::vector<int> before);
  void spare_some(TestGeneration& next, const HandoverChain& chain);

  RandomStream random_;
  std::vector<scheduler::ScheduleKind> kinds_;
  std::uint64_t drawn_ = 0;
  int newcomers_ = 0;
};

}  // namespace everstep::trainer
