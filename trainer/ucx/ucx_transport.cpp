#include "trainer/ucx/ucx_transport.h"

#include <utility>

#include "base/log_line.h"
#include "trainer/ucx/network_device.h"
#include "trainer/ucx/ucx_address.h"
#include "trainer/ucx/ucx_engine.h"
#include "trainer/ucx/ucx_session.h"

namespace everstep::trainer {
namespace {

class Listener final : public UcxListener {
 public:
  Listener(int worker, std::unique_ptr<UcxEngine> engine, LifelineListener lifelines, std::string address)
      : worker_(worker), engine_(std::move(engine)), lifelines_(std::move(lifelines)), address_(std::move(address)) {}

  const std::string& address() const override { return address_; }

  Result<std::unique_ptr<Transport>> connect(const std::vector<std::string>& addresses,
                                             std::chrono::milliseconds timeout) override {
    std::vector<LifelineAddress> lifeline_addresses;
    std::vector<std::string> ucx_addresses;
    for (const std::string& bytes : addresses) {
      const Result<UcxAddress> address = decode_address(bytes);
      if (!address) return address.error();
      if (address->worker != static_cast<int>(ucx_addresses.size())) {
        return invalid_argument("the address in place " + std::to_string(ucx_addresses.size()) + " is worker " +
                                std::to_string(address->worker) + "'s");
      }
      lifeline_addresses.push_back(address->lifeline);
      ucx_addresses.push_back(address->ucx);
    }
    Result<Lifelines> lifelines = std::move(lifelines_).connect(lifeline_addresses, timeout);
    if (!lifelines) return lifelines.error();
    EVERSTEP_TRY(engine_->connect(ucx_addresses));
    return make_ucx_session(worker_, static_cast<int>(addresses.size()), std::move(engine_),
                            std::move(lifelines).value());
  }

 private:
  int worker_;
  std::unique_ptr<UcxEngine> engine_;
  LifelineListener lifelines_;
  std::string address_;
};

}  // namespace

Result<std::unique_ptr<UcxListener>> UcxListener::listen(const UcxOptions& options) {
  Result<LifelineListener> lifelines = LifelineListener::listen(
      {options.bind, options.port}, {options.lineage, options.generation, options.worker}, options.log);
  if (!lifelines) return lifelines.error();
  const Result<std::string> device = device_with_address(options.bind);
  if (!device) return device.error();
  const bool read_memory = may_read_other_processes();
  if (!read_memory && options.log) {
    options.log(LogLine("transport_slower")
                    .add("worker", options.worker)
                    .add("reason", "the kernel does not let processes read each other's memory")
                    .add("hint", "sysctl kernel.yama.ptrace_scope=0")
                    .text());
  }
  Result<std::unique_ptr<UcxEngine>> engine = UcxEngine::create({*device, read_memory});
  if (!engine) return engine.error();
  const Result<std::string> ucx = engine.value()->address();
  if (!ucx) return ucx.error();
  std::string address = encode_address({options.worker, lifelines->address(), *ucx});
  return std::unique_ptr<UcxListener>(std::make_unique<Listener>(options.worker, std::move(engine).value(),
                                                                 std::move(lifelines).value(), std::move(address)));
}

}  // namespace everstep::trainer
