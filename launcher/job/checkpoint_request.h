#pragma once

#include <optional>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "launcher/job/checkpoint_store.h"
#include "storage/retention.h"
#include "trainer/checkpoints/checkpoint.h"

namespace everstep::launcher {

// Where --resume wants to start.
struct ResumeWish {
  enum class Kind {
    kNever,   // at the beginning, where nothing may be yet
    kNewest,  // at the newest checkpoint that verifies
    kStep,    // at the newest one of that step
    kAuto,    // at the newest one, or at the beginning if there never was one
  };

  Kind kind = Kind::kNever;
  std::int64_t step = 0;

  bool operator==(const ResumeWish&) const = default;
};

// What --checkpoint-dir and the options that go with it ask for.
struct CheckpointRequest {
  StoreLocation store;
  trainer::CheckpointPolicy policy;
  storage::RetentionOptions retention;
  ResumeWish resume;

  bool operator==(const CheckpointRequest&) const = default;
};

std::vector<OptionSpec> checkpoint_options();

// Nothing without --checkpoint-dir; the command line may hold none of the others then. Fills `failure` instead if an
// option does not fit.
std::optional<CheckpointRequest> read_checkpoint_request(const Config& config, Outcome& failure);

}  // namespace everstep::launcher
