#include <array>
#include <bit>

#include "storage/hdf5/hdf5_header.h"

namespace everstep::storage {
namespace {

struct State {
  std::uint32_t a;
  std::uint32_t b;
  std::uint32_t c;
};

void mix(State& s) {
  s.a -= s.c, s.a ^= std::rotl(s.c, 4), s.c += s.b;
  s.b -= s.a, s.b ^= std::rotl(s.a, 6), s.a += s.c;
  s.c -= s.b, s.c ^= std::rotl(s.b, 8), s.b += s.a;
  s.a -= s.c, s.a ^= std::rotl(s.c, 16), s.c += s.b;
  s.b -= s.a, s.b ^= std::rotl(s.a, 19), s.a += s.c;
  s.c -= s.b, s.c ^= std::rotl(s.b, 4), s.b += s.a;
}

void finish(State& s) {
  s.c ^= s.b, s.c -= std::rotl(s.b, 14);
  s.a ^= s.c, s.a -= std::rotl(s.c, 11);
  s.b ^= s.a, s.b -= std::rotl(s.a, 25);
  s.c ^= s.b, s.c -= std::rotl(s.b, 16);
  s.a ^= s.c, s.a -= std::rotl(s.c, 4);
  s.b ^= s.a, s.b -= std::rotl(s.a, 14);
  s.c ^= s.b, s.c -= std::rotl(s.b, 24);
}

void add(State& s, std::span<const std::byte> block) {
  std::array<std::uint32_t, 3> words{};
  for (std::size_t i = 0; i < block.size(); ++i) {
    words[i / 4] |= std::to_integer<std::uint32_t>(block[i]) << (8 * (i % 4));
  }
  s.a += words[0], s.b += words[1], s.c += words[2];
}

}  // namespace

std::uint32_t hdf5_checksum(std::span<const std::byte> bytes) {
  constexpr std::size_t kBlock = 12;
  const std::uint32_t start = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size());
  State state{start, start, start};
  if (bytes.empty()) return state.c;
  while (bytes.size() > kBlock) {
    add(state, bytes.first(kBlock));
    mix(state);
    bytes = bytes.subspan(kBlock);
  }
  add(state, bytes);
  finish(state);
  return state.c;
}

}  // namespace everstep::storage
