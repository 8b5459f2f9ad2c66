#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/head.h"
#include "storage/ledger.h"
#include "storage/manifest.h"

namespace everstep::storage {

// What a made-up checkpoint looks like. The defaults are a flush checkpoint of two small blocks.
struct SampleOptions {
  std::string job = "sample";
  std::uint64_t lineage = 0x0123456789abcdef;
  Generation generation{3};
  Version version{5};
  std::uint32_t nonce = 0x9f3a11c2;
  int blocks = 2;
  int window = 4;
  int minibatches_into_window = 0;  // above 0: a cut inside a window, with gradients
  bool live = false;                // with the previous version; at a window's start only
  ElementType weights = ElementType::kFloat32;
  std::string accumulation = "float32";
};

// A manifest that passes check(). Digests are made up; sizes are those of the tensors' bytes.
Manifest sample_manifest(const SampleOptions& options = {});

// Bytes for one tensor of a file: always the same for the same block, kind, version and tensor, else different.
std::vector<std::byte> sample_bytes(const FileRecord& file, std::size_t tensor);

// The segment from `begin` to the manifest's position; passes check().
LedgerSegment sample_ledger(const Manifest& manifest, Position begin = {});

// A HEAD that names the manifest.
Head sample_head(const Manifest& manifest, const Digest& digest, std::int64_t sequence = 1);

}  // namespace everstep::storage
