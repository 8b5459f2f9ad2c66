#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/job/train_request.h"

namespace everstep::launcher {

inline constexpr std::int64_t kHostMemory = std::int64_t{64} << 30;

// The configuration of `everstep train` with these arguments.
inline Config train_config(const std::vector<std::string>& args) {
  CommandSpec spec;
  spec.name = "train";
  spec.options = train_options();
  return *merge_config(spec, {.args = *parse_args(spec, args)});
}

inline TrainRequest train_request(const std::vector<std::string>& args, std::int64_t host_memory = kHostMemory) {
  Outcome failure;
  TrainRequest request = read_train_request(train_config(args), host_memory, failure);
  EVERSTEP_CHECK(!failure, failure->error.line());
  return request;
}

}  // namespace everstep::launcher
