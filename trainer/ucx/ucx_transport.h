#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/transport.h"
#include "trainer/ucx/lifelines.h"

namespace everstep::trainer {

struct UcxOptions {
  std::string bind = "127.0.0.1";  // an IPv4 address of this machine; nothing listens elsewhere
  std::uint16_t port = 0;          // of the lifelines; 0: any
  int worker = 0;
  std::uint64_t lineage = 0;
  Generation generation{};
  LogHook log{};  // may be empty
};

// A worker that can be called but knows no peers yet. Meant to be used once: listen, tell the others address() by any
// means, learn theirs, connect.
class UcxListener {
 public:
  // kInvalidArgument if the port is in use or the address is not this machine's.
  static Result<std::unique_ptr<UcxListener>> listen(const UcxOptions& options);

  virtual ~UcxListener() = default;

  // Bytes, not text.
  virtual const std::string& address() const = 0;

  // `addresses[i]` is worker i's, the own one included. Returns when every peer is connected. See
  // LifelineListener::connect for failures; kInvalidArgument for addresses that are damaged or out of order.
  virtual Result<std::unique_ptr<Transport>> connect(const std::vector<std::string>& addresses,
                                                     std::chrono::milliseconds timeout) = 0;
};

}  // namespace everstep::trainer
