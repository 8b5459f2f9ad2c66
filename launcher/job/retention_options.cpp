#include "launcher/job/retention_options.h"

namespace everstep::launcher {

std::vector<OptionSpec> retention_options() {
  return {
      {.name = "keep-last",
       .value_name = "N",
       .default_text = "3",
       .help = "Newest checkpoints to keep, at least 2",
       .on_resume = OnResume::kMayChange},
      {.name = "keep-every",
       .value_name = "N",
       .default_text = "0",
       .help = "Keep also those at multiples of so many updates; 0 for none",
       .on_resume = OnResume::kMayChange},
      {.name = "keep-best",
       .value_name = "N",
       .default_text = "0",
       .help = "Keep also so many with the lowest validation loss",
       .on_resume = OnResume::kMayChange},
  };
}

storage::RetentionOptions read_retention(Values& values) {
  constexpr int kMost = 1'000'000;
  storage::RetentionOptions retention;
  retention.keep_last = static_cast<int>(values.integer("keep-last", {.min = 2, .max = kMost}));
  retention.keep_every = values.integer("keep-every", {.min = 0});
  retention.keep_best = static_cast<int>(values.integer("keep-best", {.min = 0, .max = kMost}));
  return retention;
}

}  // namespace everstep::launcher
