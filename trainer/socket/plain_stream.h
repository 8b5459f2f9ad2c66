#pragma once

#include <memory>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/file_descriptor.h"

namespace everstep::trainer {

// Over a connected AF_UNIX socket that does not block. kInvalidArgument unless the other end belongs to this user.
Result<std::unique_ptr<ByteStream>> make_plain_stream(FileDescriptor socket);

// Reads what the socket has, and hands bytes to it. For streams.
StreamResult read_socket(int socket, std::span<const iovec> into);
StreamResult write_socket(int socket, std::span<const iovec> from);

}  // namespace everstep::trainer
