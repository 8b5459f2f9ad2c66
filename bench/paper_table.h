#pragma once

#include <string>
#include <vector>

namespace everstep::bench {

// One row of the AMDP paper's table for 8 GPUs: throughput relative to PipeDream-2BW.
struct PaperRow {
  std::string model;
  int rounds_per_update = 1;  // T; the update batch is 4 sequences * 8 minibatches * T
  double amdp = 0;            // by the timeline
  double interleaved = 0;
  double published_amdp = 0;
  double published_interleaved = 0;
};

// Times the paper's models as its authors ran them: equal numbers of transformer blocks per stage, the embedding on the
// first and the head on the last, two blocks per chunk when interleaved, links that cost nothing (NVLink), and an
// update that costs AMDP `update` forwards of a stage (the paper's ablation over T gives about 3.7). The baselines'
// updates are local to a stage and free.
std::vector<PaperRow> paper_table(double update = 3.7);

}  // namespace everstep::bench
