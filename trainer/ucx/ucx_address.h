#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/ucx/lifelines.h"

namespace everstep::trainer {

// All that a peer needs to reach a worker, as one string of bytes that any rendezvous can carry.
struct UcxAddress {
  int worker = 0;
  LifelineAddress lifeline;
  std::string ucx;  // what ucp_worker_get_address said
};

std::string encode_address(const UcxAddress& address);

// kInvalidArgument for anything that encode_address did not make.
Result<UcxAddress> decode_address(std::string_view bytes);

}  // namespace everstep::trainer
