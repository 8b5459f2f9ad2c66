#include <cstdio>

#include "bench/paper_table.h"

// Prints the comparison with the AMDP paper's 8-GPU table as markdown, for docs/schedules.md.
int main() {
  std::puts("| model | T | AMDP / PipeDream-2BW | published | interleaved / PipeDream-2BW | published |");
  std::puts("|---|---:|---:|---:|---:|---:|");
  for (const everstep::bench::PaperRow& row : everstep::bench::paper_table()) {
    std::printf("| %s | %d | %.3f | %.3f | %.3f | %.3f |\n", row.model.c_str(), row.rounds_per_update, row.amdp,
                row.published_amdp, row.interleaved, row.published_interleaved);
  }
}
