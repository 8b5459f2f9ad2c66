#include "tests/storage/json/document_generators.h"

#include <bit>
#include <set>
#include <utility>

#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::storage {
namespace {

double any_double() {
  const auto special = *rc::gen::inRange(0, 4);
  const auto bits = *rc::gen::arbitrary<std::uint64_t>();
  if (special == 0) return std::bit_cast<double>(bits | 0x7ff0000000000000);  // NaN or infinity
  return std::bit_cast<double>(bits);
}

std::optional<double> double_or_nothing() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return any_double();
}

Digest any_digest() {
  Digest digest;
  for (std::byte& byte : digest.bytes) byte = static_cast<std::byte>(*rc::gen::inRange(0, 256));
  return digest;
}

std::optional<Digest> digest_or_nothing() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return any_digest();
}

WriterTag any_writer() {
  return {.author = *rc::gen::arbitrary<std::uint32_t>(), .random = *rc::gen::arbitrary<std::uint32_t>()};
}

Settings any_settings() {
  const std::vector<std::string> values = {"",         "plain", "quotes \" and \\", "tab\tnewline\n", "Grüße, 模型",
                                           "../../etc"};
  Settings settings;
  for (const auto number : *rc::gen::container<std::set<int>>(rc::gen::inRange(100, 999))) {
    settings.emplace_back("name/" + std::to_string(number), *rc::gen::elementOf(values));
  }
  return settings;
}

std::vector<std::int64_t> any_windows(std::int64_t end) {
  std::vector<std::int64_t> windows;
  for (std::int64_t window = 0; window < end; ++window) {
    if (*rc::gen::inRange(0, 3) == 0) windows.push_back(window);
  }
  return windows;
}

SampleOptions any_options() {
  SampleOptions options;
  options.lineage = *rc::gen::arbitrary<std::uint64_t>();
  options.generation = {*rc::gen::inRange<std::int64_t>(0, 1000)};
  options.nonce = *rc::gen::arbitrary<std::uint32_t>();
  options.version = {*rc::gen::inRange<std::int64_t>(1, 30)};
  options.blocks = *rc::gen::inRange(1, 6);
  options.window = *rc::gen::inRange(1, 9);
  options.minibatches_into_window = *rc::gen::inRange(0, options.window);
  options.live = options.minibatches_into_window == 0 && *rc::gen::arbitrary<bool>();
  options.weights = *rc::gen::element(ElementType::kFloat32, ElementType::kBfloat16);
  options.accumulation = *rc::gen::element(std::string("float32"), std::string("fixed48"));
  return options;
}

}  // namespace

rc::Gen<Manifest> random_manifest() {
  return rc::gen::exec([] {
    Manifest manifest = sample_manifest(any_options());
    manifest.flushed = any_windows(manifest.version.value + 1);
    manifest.skipped = any_windows(manifest.version.value);
    manifest.applied = manifest.version.value - static_cast<std::int64_t>(manifest.skipped.size());
    for (StoredLoss& loss : manifest.window_losses) loss.loss = any_double();
    manifest.loss = double_or_nothing();
    manifest.validation_loss = double_or_nothing();
    manifest.parent = digest_or_nothing();
    manifest.ledger = digest_or_nothing();
    manifest.ledger_writer = any_writer();
    manifest.configuration = any_settings();
    manifest.provenance = any_settings();
    for (FileRecord& file : manifest.files) {
      file.writer = any_writer();
      file.sha256 = any_digest();
      file.size += *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 43);
    }
    return manifest;
  });
}

rc::Gen<Head> random_head() {
  return rc::gen::exec([] {
    Head head = sample_head(sample_manifest(any_options()), any_digest(), *rc::gen::inRange<std::int64_t>(1, 1000));
    head.writer = any_writer();
    if (head.sequence > 1) head.previous = digest_or_nothing();
    head.parent = digest_or_nothing();
    return head;
  });
}

rc::Gen<LedgerSegment> random_ledger_segment(const Manifest& manifest) {
  return rc::gen::exec([manifest] {
    LedgerSegment segment =
        sample_ledger(manifest, {*rc::gen::inRange<std::int64_t>(0, manifest.name.position.value + 1)});
    segment.before = digest_or_nothing();
    for (LedgerEntry& entry : segment.entries) {
      entry.generation = {*rc::gen::inRange<std::int64_t>(0, 1000)};
      entry.flushed = *rc::gen::arbitrary<bool>();
      entry.skipped = *rc::gen::arbitrary<bool>();
      for (double& loss : entry.losses) loss = any_double();
    }
    return segment;
  });
}

Bits<Manifest> bits_of(Manifest manifest) {
  std::vector<std::uint64_t> doubles;
  const auto take = [&](double& value) { doubles.push_back(std::bit_cast<std::uint64_t>(std::exchange(value, 0))); };
  for (StoredLoss& loss : manifest.window_losses) take(loss.loss);
  if (manifest.loss) take(*manifest.loss);
  if (manifest.validation_loss) take(*manifest.validation_loss);
  return {std::move(manifest), std::move(doubles)};
}

Bits<LedgerSegment> bits_of(LedgerSegment segment) {
  std::vector<std::uint64_t> doubles;
  for (LedgerEntry& entry : segment.entries) {
    for (double& loss : entry.losses) doubles.push_back(std::bit_cast<std::uint64_t>(std::exchange(loss, 0)));
  }
  return {std::move(segment), std::move(doubles)};
}

}  // namespace everstep::storage
