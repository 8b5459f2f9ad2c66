#include "trainer/nccl/nccl_api.h"

#include <map>
#include <utility>

namespace everstep::trainer {
namespace {

constexpr int kOldestNccl = 23000;

std::map<std::string, MakeNcclApi>& added_apis() {
  static std::map<std::string, MakeNcclApi> apis;
  return apis;
}

}  // namespace

void add_nccl(const std::string& device_kind, MakeNcclApi make) { added_apis()[device_kind] = std::move(make); }

Result<NcclApi> find_nccl(const std::string& device_kind) {
  const auto found = added_apis().find(device_kind);
  if (found == added_apis().end()) {
    return not_found("this build has no NCCL for devices of the kind " + device_kind,
                     "--transport=host needs none; the preset cuda makes a build that has one for GPUs");
  }
  auto api = found->second();
  if (!api) return api;
  if (const Status enough = check_nccl_version(api->get_version()); !enough) return enough.error();
  return api;
}

Status check_nccl_version(int version) {
  if (version >= kOldestNccl) return {};
  return not_found("NCCL is too old: it has version " + std::to_string(version) + ", and " +
                       std::to_string(kOldestNccl) + " is needed",
                   "scripts/setup --cuda installs one, and --transport=host needs none");
}

}  // namespace everstep::trainer
