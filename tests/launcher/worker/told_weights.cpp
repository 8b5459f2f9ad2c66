#include "tests/launcher/worker/told_weights.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include <unistd.h>

#include "launcher/cli/files.h"

namespace everstep::launcher {

MakeStage telling_weights_as_asked(MakeStage make_stage) {
  const char* directory = std::getenv("TEST_WEIGHTS_TOLD_IN");
  if (directory == nullptr) return make_stage;
  const std::string path = std::string(directory) + "/" + std::to_string(::getpid());
  return [path, make = std::move(make_stage)](const trainer::StageRequest& request) {
    const trainer::Buffer& weights = request.memory.weights;
    const Status told = write_file(path, std::to_string(reinterpret_cast<std::uintptr_t>(weights.data)) + " " +
                                             std::to_string(weights.size) + "\n");
    EVERSTEP_CHECK(told.ok(), "cannot write " + path);
    return make(request);
  };
}

}  // namespace everstep::launcher
