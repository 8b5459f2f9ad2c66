#include "launcher/worker/control_link.h"

#include <cstdlib>
#include <utility>

#include <sys/socket.h>

#include "base/check.h"
#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

ControlLink::ControlLink(ControlSocket socket, std::function<void()> on_orphaned)
    : socket_(std::move(socket)), on_orphaned_(std::move(on_orphaned)), thread_([this] { listen(); }) {}

ControlLink::~ControlLink() {
  is_closing_ = true;
  ::shutdown(socket_.fd(), SHUT_RD);
  thread_.join();
}

void ControlLink::send(const FromWorker& message) const {
  const bool is_news =
      std::holds_alternative<Alive>(message) || std::holds_alternative<Validation>(message) ||
      std::holds_alternative<trainer::SaveSkipped>(message) || std::holds_alternative<trainer::StepReport>(message) ||
      std::holds_alternative<ElasticStep>(message) || std::holds_alternative<GenerationChanged>(message) ||
      std::holds_alternative<WorkerNote>(message);
  socket_.send(encode(message), is_news ? ControlSocket::WhenFull::kDrop : ControlSocket::WhenFull::kWait);
}

void ControlLink::set_verdict_taker(std::function<void(const trainer::Verdict&)> taker) {
  const std::scoped_lock lock(mutex_);
  take_verdict_ = std::move(taker);
}

void ControlLink::take(const trainer::Verdict& verdict) {
  const std::scoped_lock lock(mutex_);
  if (take_verdict_) take_verdict_(verdict);
}

void ControlLink::listen() {
  while (true) {
    send(Alive{});
    if (!socket_.readable(static_cast<int>(kAliveEvery.count()))) continue;
    const auto text = socket_.receive();
    if (is_closing_) return;
    if (!text) {
      on_orphaned_();
      // Not exit(): the other thread is in the middle of something.
      std::_Exit(static_cast<int>(ExitCode::kUnreachable));
    }
    const auto message = decode_to_worker(*text);
    EVERSTEP_CHECK(message.ok(), message.error().line());
    std::visit([this](const auto& one) { take(one); }, *message);
  }
}

}  // namespace everstep::launcher
