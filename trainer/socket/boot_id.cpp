#include "trainer/socket/boot_id.h"

#include <fstream>

namespace everstep::trainer {

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, id);
  return id.empty() ? "unknown" : id;
}

}  // namespace everstep::trainer
