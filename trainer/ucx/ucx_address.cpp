#include "trainer/ucx/ucx_address.h"

#include <cstdint>
#include <span>
#include <utility>

#include "trainer/frame.h"
#include "trainer/wire.h"

namespace everstep::trainer {
namespace {

constexpr std::uint64_t kMagic = 0x3158435545564545;  // "EEVEUCX1"

}  // namespace

std::string encode_address(const UcxAddress& address) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(static_cast<std::int32_t>(address.worker));
  writer.put(address.lifeline.port);
  writer.put_text(address.lifeline.host);
  writer.put_text(address.ucx);
  writer.put(byte_checksum(writer.bytes()));
  return std::move(writer).take();
}

Result<UcxAddress> decode_address(std::string_view bytes) {
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  WireReader reader(all);
  const auto magic = reader.get<std::uint64_t>();
  UcxAddress address;
  address.worker = reader.get<std::int32_t>();
  reader.get(address.lifeline.port);
  address.lifeline.host = reader.get_text();
  address.ucx = reader.get_text();
  const auto checksum = reader.get<std::uint64_t>();
  // UCX trusts the bytes it is given, so damage must be found here.
  if (magic != kMagic || !reader.at_end() || checksum != byte_checksum(all.first(all.size() - sizeof checksum))) {
    return invalid_argument("a worker's address of " + std::to_string(bytes.size()) + " bytes is damaged",
                            "was it cut off on its way?");
  }
  return address;
}

}  // namespace everstep::trainer
