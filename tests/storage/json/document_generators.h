#pragma once

#include <string>

#include <rapidcheck.h>

#include "storage/head.h"
#include "storage/ledger.h"
#include "storage/manifest.h"

namespace everstep::storage {

// Documents that pass check(), of all shapes: flush, live and in-window cuts, both accumulations and types, losses of
// any bits, texts with quotes, control characters and UTF-8.
rc::Gen<Manifest> random_manifest();
rc::Gen<Head> random_head();
rc::Gen<LedgerSegment> random_ledger_segment(const Manifest& manifest);

// The document with every double replaced by zero, and the doubles' bits beside it: NaN compares equal to itself.
template <typename Document>
struct Bits {
  Document rest;
  std::vector<std::uint64_t> doubles;
  bool operator==(const Bits&) const = default;
};
Bits<Manifest> bits_of(Manifest manifest);
Bits<LedgerSegment> bits_of(LedgerSegment segment);

}  // namespace everstep::storage
