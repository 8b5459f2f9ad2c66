#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "storage/hdf5/hdf5_format.h"
#include "tests/storage/fuzz/fuzz_targets.h"
#include "tests/storage/hdf5/assembled_file.h"
#include "tests/storage/hdf5/resealed_file.h"

namespace everstep::storage {
namespace {

void check_offsets(const std::vector<std::byte>& file, const TensorFileSpec& spec) {
  static const auto format = make_hdf5_format();
  const auto offsets = format->find_tensors(file, spec);
  if (!offsets) return;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) extents.emplace_back((*offsets)[i], spec.tensors[i].bytes());
  std::sort(extents.begin(), extents.end());
  std::uint64_t end = 0;
  for (const auto& [offset, size] : extents) {
    EVERSTEP_CHECK(offset >= end && offset <= file.size() && size <= file.size() - offset, "tensors lie apart");
    end = offset + size;
  }
}

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void fuzz_tensor_file(std::span<const std::byte> input) {
  static const TensorFileSpec spec = small_spec();
  std::vector<std::byte> file(input.begin(), input.end());
  check_offsets(file, spec);
  reseal(file);
  check_offsets(file, spec);
}

std::vector<std::string> tensor_file_seeds() {
  TensorFileSpec more = small_spec();
  more.tensors.push_back({"more/a", ElementType::kFloat32, {1}});
  TensorFileSpec other_shape = small_spec();
  other_shape.tensors.back().shape = {2, 2};
  TensorFileSpec without = small_spec();
  without.tensors.clear();
  std::vector<std::string> seeds;
  for (const TensorFileSpec& spec : {small_spec(), more, other_shape, without}) {
    seeds.push_back(as_text(make_tensor_file(spec)));
  }
  return seeds;
}

}  // namespace everstep::storage
