#include "launcher/job/lineage.h"

#include <random>

namespace everstep::launcher {

std::uint64_t random_lineage() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace everstep::launcher
