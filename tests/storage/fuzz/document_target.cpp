#include <string_view>

#include "base/check.h"
#include "storage/json/document_json.h"
#include "tests/storage/fakes/sample_manifest.h"
#include "tests/storage/fuzz/fuzz_targets.h"

namespace everstep::storage {
namespace {

// What was parsed can be written, and what is written then is parsed as the same.
template <typename Parse>
void check_round_trip(const DocumentFormat& format, std::string_view text, Parse parse) {
  const auto document = parse(text);
  if (!document) return;
  const std::string written = format.encode(*document);
  const auto again = parse(written);
  EVERSTEP_CHECK(again.ok(), "an encoded document is parsed: " + again.error().line());
  EVERSTEP_CHECK(format.encode(*again) == written, "an encoded document is parsed as the same");
}

}  // namespace

void fuzz_documents(std::span<const std::byte> input) {
  static const auto format = make_json_documents();
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  check_round_trip(*format, text, [](std::string_view t) { return format->parse_manifest(t); });
  check_round_trip(*format, text, [](std::string_view t) { return format->parse_head(t); });
  check_round_trip(*format, text, [](std::string_view t) { return format->parse_ledger_segment(t); });
  check_round_trip(*format, text, [](std::string_view t) { return format->parse_shard(t); });
}

std::vector<std::string> document_seeds() {
  const auto format = make_json_documents();
  SampleOptions cut_inside_window;
  cut_inside_window.blocks = 1;
  cut_inside_window.minibatches_into_window = 2;
  cut_inside_window.weights = ElementType::kBfloat16;
  std::vector<std::string> seeds;
  for (const SampleOptions& options : {SampleOptions{}, cut_inside_window}) {
    const Manifest manifest = sample_manifest(options);
    Shard shard;
    shard.job = manifest.job;
    shard.files = manifest.files;
    seeds.push_back(format->encode(manifest));
    seeds.push_back(format->encode(sample_head(manifest, Digest{})));
    seeds.push_back(format->encode(sample_ledger(manifest)));
    seeds.push_back(format->encode(shard));
  }
  return seeds;
}

}  // namespace everstep::storage
