#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "base/result.h"

namespace everstep::trainer {

// Told once how an operation ended, with the number of bytes that came (0 for a send). kInternal: the message was
// longer than the buffer; kUnavailable: UCX lost the peer. May run before the call that posted the operation returns,
// else inside progress().
using UcxDone = std::function<void(Result<std::size_t>)>;

struct UcxEngineOptions {
  std::string device;       // all traffic between hosts, and all listening, happens on this network device
  bool read_memory = true;  // let processes on one host copy large messages from each other's memory
};

// UCX without its C: one context, one worker, one endpoint per peer. Not thread-safe.
//
// UCX's error handling mode stays off: with it UCX crashes survivors of a large transfer. Instead, after the death of
// somebody who is needed nobody calls progress() again and the engine is abandoned (never destroyed): operations that
// were under way cannot be ended safely, and a peer may still be reading their buffers.
class UcxEngine {
 public:
  static Result<std::unique_ptr<UcxEngine>> create(const UcxEngineOptions& options);
  ~UcxEngine();

  UcxEngine(const UcxEngine&) = delete;
  UcxEngine& operator=(const UcxEngine&) = delete;

  // What peers need for connect().
  Result<std::string> address() const;

  // `addresses[i]` is worker i's; the own one may be among them. Nothing is sent yet.
  Status connect(const std::vector<std::string>& addresses);

  // The bytes must stay as they are until `done`.
  void send(int to, std::uint64_t tag, std::span<const std::byte> bytes, UcxDone done);

  // At most bytes.size() bytes are written; a longer message is an error and writes nothing outside.
  void receive(std::uint64_t tag, std::span<std::byte> bytes, UcxDone done);

  void progress();

  // Whether descriptor() will become readable at the next event. If not, call progress() first.
  bool arm();
  int descriptor() const { return descriptor_; }

  // After posting from a thread that does not sleep on the descriptor: does what can be done at once, and makes sure
  // that the thread that does sleep there wakes for the rest.
  void settle();

 private:
  UcxEngine() = default;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<ucp_ep_h> endpoints_;
  int descriptor_ = -1;
};

}  // namespace everstep::trainer
