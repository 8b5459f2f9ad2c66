#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/ucx/lifeline/file_descriptor.h"

namespace everstep::trainer {

// Called with one line in logfmt, possibly from a service thread.
using LogHook = std::function<void(const std::string& line)>;

// Where a worker's lifelines are accepted.
struct LifelineAddress {
  std::string host;  // an IPv4 address in digits
  std::uint16_t port = 0;
};

// "10.0.0.7:4711"
std::string to_text(const LifelineAddress& address);

// kInvalidArgument for anything but an IPv4 address in digits and a port.
Result<LifelineAddress> parse_lifeline_address(std::string_view text);

struct LifelineRange {
  std::string host;
  std::uint16_t first_port = 0;  // 0: any
  std::uint16_t last_port = 0;
};

struct ListeningSocket {
  FileDescriptor socket;
  LifelineAddress address;
};

// Takes the first free port. kInvalidArgument names host and port if none can be had.
Result<ListeningSocket> listen_for_lifelines(const LifelineRange& range);

// Begins to call; the socket becomes writable when it is decided. kUnavailable if that is known at once.
Result<FileDescriptor> call_lifeline(const LifelineAddress& address);

// How a call that was begun ended: 0 or an errno.
int call_error(const FileDescriptor& socket);

// A process that dies closes its sockets; a host that dies, or a cable, does not. The kernel gives a connection up when
// what was written to it has not been answered for some 2 s, after eight tries or more. A process that is only stopped
// keeps it.
void notice_lost_host(const FileDescriptor& socket);

std::string errno_text(int error);

}  // namespace everstep::trainer
