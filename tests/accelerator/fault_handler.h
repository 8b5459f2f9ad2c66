#pragma once

namespace everstep::accelerator {

// Is told of every SIGSEGV of this process, in the signal handler of the thread that caused it, which was at an
// ordinary load or store: locks may be taken unless that thread can hold them there, and memory is not allocated.
class FaultListener {
 public:
  virtual ~FaultListener() = default;

  // Returns whether the thread may try again. Otherwise the next listener is asked, and last whoever handled the signal
  // before: by default the process ends.
  virtual bool on_fault(const void* address, bool writes) = 0;
};

// At most 16 at once. A listener that has ended hears nothing more when end_listening() returns, unless another thread
// is in a fault just then.
void begin_listening(FaultListener& listener);
void end_listening(FaultListener& listener);

}  // namespace everstep::accelerator
