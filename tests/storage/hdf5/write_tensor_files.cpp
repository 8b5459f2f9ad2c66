// Usage: write_tensor_files DIRECTORY
//
// Writes tensor files for another reader, each with a text beside it that says what it holds: the attributes, then a
// line "name type dimensions bytes" per tensor, all in hexadecimal or joined by ','.

#include <fstream>
#include <string>

#include "base/text.h"
#include "tests/storage/hdf5/assembled_file.h"

namespace everstep::storage {
namespace {

TensorFileSpec one_without_tensors() { return {{"", "weights", 0, 0, 0, 1}, {}}; }

TensorFileSpec one_with_many_tensors() {
  TensorFileSpec spec{{"many tensors", "gradients", -1, std::int64_t{1} << 62, 9, 1}, {}};
  for (int i = 0; i < 200; ++i) {
    const std::string group = i % 3 == 0 ? "" : i % 3 == 1 ? "first_moment/" : "second_moment/";
    spec.tensors.push_back({group + "h." + std::to_string(i) + ".attn.c_attn.weight", static_cast<ElementType>(i % 3),
                            std::vector<std::int64_t>(static_cast<std::size_t>(i % 9), 1 + i % 2)});
  }
  return spec;
}

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_with_description(const std::string& path, const TensorFileSpec& spec) {
  std::ofstream(path, std::ios::binary) << as_text(make_tensor_file(spec));
  std::ofstream description(path + ".txt");
  const TensorFileAttributes& a = spec.attributes;
  description << to_hex(a.job) << ',' << a.kind << ',' << a.block << ',' << a.position << ',' << a.version << ','
              << a.format << '\n';
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorSpec& tensor = spec.tensors[i];
    description << tensor.name << ' ' << to_string(tensor.type) << " (";
    for (const std::int64_t dimension : tensor.shape) description << dimension << ',';
    description << ") " << to_hex(as_text(tensor_bytes(spec, i))) << '\n';
  }
}

}  // namespace
}  // namespace everstep::storage

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = argv[1];
  everstep::storage::write_with_description(directory + "/small.h5", everstep::storage::small_spec());
  everstep::storage::write_with_description(directory + "/empty.h5", everstep::storage::one_without_tensors());
  everstep::storage::write_with_description(directory + "/many.h5", everstep::storage::one_with_many_tensors());
  return 0;
}
