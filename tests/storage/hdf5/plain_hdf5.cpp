#include "tests/storage/hdf5/plain_hdf5.h"

#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_directory.h"

namespace everstep::storage {
namespace {

hid_t timeless(hid_t kind) {
  const hid_t properties = H5Pcreate(kind);
  H5Pset_obj_track_times(properties, false);
  return properties;
}

hid_t tensor_properties() {
  const hid_t properties = timeless(H5P_DATASET_CREATE);
  H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  return properties;
}

void write_attribute(hid_t object, const char* name, hid_t type, const void* value) {
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, value);
  H5Aclose(attribute);
  H5Sclose(space);
}

void write_text(hid_t object, const char* name, const std::string& text) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, text.size());
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  write_attribute(object, name, type, text.c_str());
  H5Tclose(type);
}

void write_attributes(hid_t file, const TensorFileAttributes& attributes) {
  write_text(file, "job", attributes.job);
  write_text(file, "kind", attributes.kind);
  PlainHdf5::write_number(file, "block", attributes.block);
  PlainHdf5::write_number(file, "position", attributes.position);
  PlainHdf5::write_number(file, "version", attributes.version);
  PlainHdf5::write_number(file, "format", attributes.format);
}

void create_dataset(hid_t group, const char* name, hid_t type, const std::vector<hsize_t>& shape, hid_t properties,
                    const std::string& dtype, const void* values) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  if (values != nullptr) H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  write_text(dataset, "dtype", dtype);
  H5Dclose(dataset);
  H5Sclose(space);
}

void create_group_with_tensor(hid_t file) {
  const hid_t group_properties = timeless(H5P_GROUP_CREATE);
  const hid_t dataset_properties = tensor_properties();
  const hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, group_properties, H5P_DEFAULT);
  const std::int64_t values[] = {4, -5};
  create_dataset(group, "v", H5T_STD_I64LE, {2}, dataset_properties, "int64", values);
  H5Gclose(group);
  H5Pclose(dataset_properties);
  H5Pclose(group_properties);
}

}  // namespace

PlainHdf5::PlainHdf5()
    : file_creation(timeless(H5P_FILE_CREATE)),
      file_access(H5Pcreate(H5P_FILE_ACCESS)),
      dataset_creation(tensor_properties()),
      type(H5T_IEEE_F32LE) {
  H5Pset_libver_bounds(file_access, H5F_LIBVER_V18, H5F_LIBVER_V18);
}

PlainHdf5::~PlainHdf5() {
  H5Pclose(dataset_creation);
  H5Pclose(file_access);
  H5Pclose(file_creation);
}

TensorFileSpec PlainHdf5::spec() {
  return {{"job-a", "weights", 3, 128, 7, 1},
          {{"w", ElementType::kFloat32, {2, 3}}, {"group/v", ElementType::kInt64, {2}}}};
}

void PlainHdf5::write_number(hid_t object, const char* name, std::int64_t number) {
  write_attribute(object, name, H5T_STD_I64LE, &number);
}

std::vector<std::byte> PlainHdf5::bytes() const {
  const TemporaryDirectory directory;
  const std::string path = directory.file("plain.h5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, file_creation, file_access);
  write_attributes(file, spec().attributes);
  before_dataset(file);
  const double values[6] = {1, 2, 3, 4, 5, 6};  // bytes enough for every type
  create_dataset(file, "w", type, shape, dataset_creation, "float32", write ? values : nullptr);
  create_group_with_tensor(file);
  finally(file);
  H5Fclose(file);
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace everstep::storage
