#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {

Result<NcclApi> real_nccl_api() {
  return not_found("this build has no NCCL", "configure with the preset cuda, or train on the CPU");
}

}  // namespace everstep::trainer
