#include "tests/accelerator/fault_handler.h"

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>

#include <sys/ucontext.h>

#include "base/check.h"

namespace everstep::accelerator {
namespace {

std::array<std::atomic<FaultListener*>, 16> listeners;
struct sigaction previous_action {};

// Where the processor does not tell, a touch counts as a read.
bool was_write(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWriteBit = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
#else
  (void)context;
  return false;
#endif
}

void on_signal(int signal, siginfo_t* info, void* context) {
  for (const auto& listener : listeners) {
    FaultListener* const one = listener.load();
    if (one != nullptr && one->on_fault(info->si_addr, was_write(context))) return;
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
  } else {
    ::sigaction(SIGSEGV, &previous_action, nullptr);  // and the load or store is tried again
  }
}

void install_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    EVERSTEP_CHECK(::sigaction(SIGSEGV, &action, &previous_action) == 0, "SIGSEGV can be handled");
  });
}

}  // namespace

void begin_listening(FaultListener& listener) {
  install_once();
  for (auto& place : listeners) {
    FaultListener* empty = nullptr;
    if (place.compare_exchange_strong(empty, &listener)) return;
  }
  EVERSTEP_CHECK(false, "there are 16 listeners at most");
}

void end_listening(FaultListener& listener) {
  for (auto& place : listeners) {
    FaultListener* expected = &listener;
    if (place.compare_exchange_strong(expected, nullptr)) return;
  }
}

}  // namespace everstep::accelerator
