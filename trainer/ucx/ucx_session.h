#pragma once

#include <memory>

#include "trainer/transport.h"
#include "trainer/ucx/lifeline/lifelines.h"
#include "trainer/ucx/ucx_engine.h"
#include "trainer/ucx/ucx_reaper.h"

namespace everstep::trainer {

// The transport of a worker whose engine and lifelines are connected to all peers. It has a service thread, which
// sleeps while nothing happens; send() and post_receive() hand over to UCX in the caller's thread.
std::unique_ptr<Transport> make_ucx_session(int worker, int workers, std::unique_ptr<UcxEngine> engine,
                                            std::shared_ptr<Lifelines> lifelines, std::shared_ptr<UcxReaper> reaper);

}  // namespace everstep::trainer
