#include "storage/hdf5/hdf5_layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "storage/hdf5/hdf5_handle.h"
#include "storage/hdf5/hdf5_recording.h"

namespace everstep::storage {
namespace {

// No input or output happens under it: the recording stands for the file.
constexpr const char* kFileName = "tensors.h5";
constexpr unsigned kAllLinksCompact = 65535;
constexpr hsize_t kAlignment = 8;  // of the widest element
constexpr std::size_t kFileAttributes = 6;

// What libhdf5 1.10 needs, rounded up. Too little costs no correctness: a header then goes on in another place, and
// metadata lies behind tensors too.
constexpr hsize_t kRoomOfFile = 1024;
constexpr hsize_t kRoomOfDataset = 288;
constexpr hsize_t kRoomOfGroup = 96;
constexpr hsize_t kRoomOfLink = 32;  // besides its name

struct GroupRoom {
  std::size_t links = 0;
  std::size_t longest_name = 8;  // an attribute takes the room of two links

  void add_link(std::string_view name) {
    ++links;
    longest_name = std::max(longest_name, name.size());
  }
  hsize_t bytes() const { return kRoomOfGroup + links * (longest_name + kRoomOfLink); }
};

// The group before '/', "" for the root, and the name in it.
struct Place {
  std::string group;
  std::string name;
};

Place place_of(const TensorSpec& tensor) {
  const std::size_t slash = tensor.name.find('/');
  if (slash == std::string::npos) return {"", tensor.name};
  return {tensor.name.substr(0, slash), tensor.name.substr(slash + 1)};
}

using Rooms = std::map<std::string, GroupRoom>;

Rooms rooms_of(const TensorFileSpec& spec) {
  Rooms rooms;
  GroupRoom& root = rooms[""];
  for (const TensorSpec& tensor : spec.tensors) {
    const Place place = place_of(tensor);
    if (!rooms.contains(place.group)) root.add_link(place.group);
    rooms[place.group].add_link(place.name);
  }
  const std::size_t texts = spec.attributes.job.size() + spec.attributes.kind.size();
  root.links += 2 * kFileAttributes + texts / root.longest_name;
  return rooms;
}

hsize_t metadata_room(const TensorFileSpec& spec, const Rooms& rooms) {
  hsize_t room = kRoomOfFile + spec.tensors.size() * kRoomOfDataset;
  for (const auto& [name, group] : rooms) room += group.bytes();
  return room;
}

Error failure(const std::string& what) {
  return {ErrorCode::kInternal, "libhdf5 could not " + what + " while laying out a tensor file", {}};
}

Hdf5Handle properties_of(hid_t kind) { return {H5Pcreate(kind), H5Pclose}; }

// Links in the header of the group itself, without heap and B-tree; no times, so that the bytes repeat. Room for as
// many links keeps the header in one place.
bool prepare_group(const Hdf5Handle& properties, const GroupRoom& room) {
  return H5Pset_link_phase_change(properties.id(), kAllLinksCompact, kAllLinksCompact) >= 0 &&
         H5Pset_est_link_info(properties.id(), static_cast<unsigned>(room.links),
                              static_cast<unsigned>(room.longest_name)) >= 0 &&
         H5Pset_obj_track_times(properties.id(), false) >= 0;
}

Hdf5Handle create_file(const TensorFileSpec& spec, const Rooms& rooms, std::shared_ptr<Hdf5Recording> recording) {
  const Hdf5Handle creation = properties_of(H5P_FILE_CREATE);
  const Hdf5Handle access = properties_of(H5P_FILE_ACCESS);
  const bool prepared = creation.ok() && access.ok() && prepare_group(creation, rooms.at("")) &&
                        record_into(std::move(recording), access.id()) &&
                        H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
                        H5Pset_meta_block_size(access.id(), metadata_room(spec, rooms)) >= 0 &&
                        H5Pset_alignment(access.id(), 1, kAlignment) >= 0;
  return {prepared ? H5Fcreate(kFileName, H5F_ACC_TRUNC, creation.id(), access.id()) : H5I_INVALID_HID, H5Fclose};
}

Hdf5Handle create_group(hid_t file, const std::string& name, const GroupRoom& room) {
  const Hdf5Handle properties = properties_of(H5P_GROUP_CREATE);
  const bool prepared = properties.ok() && prepare_group(properties, room);
  return {prepared ? H5Gcreate2(file, name.c_str(), H5P_DEFAULT, properties.id(), H5P_DEFAULT) : H5I_INVALID_HID,
          H5Gclose};
}

bool write_attribute(hid_t object, const char* name, hid_t type, const void* value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(H5Acreate2(object, name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute.ok() && H5Awrite(attribute.id(), type, value) >= 0;
}

// Of fixed length, padded with zeros as numpy does. libhdf5 has no type of length 0, and strings of variable length
// would need a heap.
bool write_text(hid_t object, const char* name, const std::string& text) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  return type.ok() && H5Tset_size(type.id(), std::max<std::size_t>(text.size(), 1)) >= 0 &&
         H5Tset_strpad(type.id(), H5T_STR_NULLPAD) >= 0 && write_attribute(object, name, type.id(), text.c_str());
}

bool write_number(hid_t object, const char* name, std::int64_t number) {
  return write_attribute(object, name, H5T_STD_I64LE, &number);
}

bool write_attributes(hid_t root, const TensorFileAttributes& attributes) {
  return write_text(root, "job", attributes.job) && write_text(root, "kind", attributes.kind) &&
         write_number(root, "block", attributes.block) && write_number(root, "position", attributes.position) &&
         write_number(root, "version", attributes.version) && write_number(root, "format", attributes.format);
}

hid_t stored_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return H5T_IEEE_F32LE;
    case ElementType::kBfloat16:
      return H5T_STD_U16LE;
    case ElementType::kInt64:
      return H5T_STD_I64LE;
  }
  return H5I_INVALID_HID;
}

Hdf5Handle create_space(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
  const std::vector<hsize_t> dimensions(shape.begin(), shape.end());
  return {H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr), H5Sclose};
}

// Where the tensor's bytes belong: allocated at once, never filled, never written.
Result<std::uint64_t> create_dataset(hid_t group, const std::string& name, const TensorSpec& tensor) {
  const Hdf5Handle properties = properties_of(H5P_DATASET_CREATE);
  const Hdf5Handle space = create_space(tensor.shape);
  const bool prepared = properties.ok() && space.ok() && H5Pset_layout(properties.id(), H5D_CONTIGUOUS) >= 0 &&
                        H5Pset_alloc_time(properties.id(), H5D_ALLOC_TIME_EARLY) >= 0 &&
                        H5Pset_fill_time(properties.id(), H5D_FILL_TIME_NEVER) >= 0 &&
                        H5Pset_obj_track_times(properties.id(), false) >= 0;
  const Hdf5Handle dataset(prepared ? H5Dcreate2(group, name.c_str(), stored_type(tensor.type), space.id(), H5P_DEFAULT,
                                                 properties.id(), H5P_DEFAULT)
                                    : H5I_INVALID_HID,
                           H5Dclose);
  if (!dataset.ok() || !write_text(dataset.id(), "dtype", std::string(to_string(tensor.type)))) {
    return failure("create the dataset " + tensor.name);
  }
  const haddr_t offset = H5Dget_offset(dataset.id());
  if (offset == HADDR_UNDEF) return failure("allocate the dataset " + tensor.name);
  return offset;
}

Result<std::vector<std::uint64_t>> create_tensors(hid_t file, const std::vector<TensorSpec>& tensors,
                                                  const Rooms& rooms) {
  std::map<std::string, Hdf5Handle> groups;
  std::vector<std::uint64_t> offsets;
  for (const TensorSpec& tensor : tensors) {
    const Place place = place_of(tensor);
    hid_t parent = file;
    if (!place.group.empty()) {
      if (!groups.contains(place.group)) {
        groups.emplace(place.group, create_group(file, place.group, rooms.at(place.group)));
      }
      parent = groups.at(place.group).id();
    }
    const auto offset = create_dataset(parent, place.name, tensor);
    if (!offset) return offset.error();
    offsets.push_back(*offset);
  }
  return offsets;
}

// The recorded bytes in front of, between and behind the tensors.
std::vector<TensorFileLayout::Piece> metadata_around(const TensorFileSpec& spec,
                                                     const std::vector<std::uint64_t>& offsets, std::uint64_t size,
                                                     const Hdf5Recording& recording) {
  std::vector<std::size_t> order(offsets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
  std::vector<TensorFileLayout::Piece> pieces;
  const auto take = [&](std::uint64_t begin, std::uint64_t end) {
    Hdf5Recording::Extent extent = recording.extent(begin, end);
    if (!extent.bytes.empty()) pieces.push_back({extent.offset, std::move(extent.bytes)});
  };
  std::uint64_t begin = 0;
  for (const std::size_t tensor : order) {
    take(begin, offsets[tensor]);
    begin = offsets[tensor] + spec.tensors[tensor].bytes();
  }
  take(begin, size);
  return pieces;
}

}  // namespace

Result<TensorFileLayout> lay_out_with_hdf5(const TensorFileSpec& spec) {
  // Not every build of libhdf5 takes calls from several threads.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const Hdf5Silence silence;
  const Rooms rooms = rooms_of(spec);
  const auto recording = std::make_shared<Hdf5Recording>();
  Hdf5Handle file = create_file(spec, rooms, recording);
  if (!file.ok()) return failure("create the file");
  if (!write_attributes(file.id(), spec.attributes)) return failure("write the attributes");
  auto offsets = create_tensors(file.id(), spec.tensors, rooms);
  if (!offsets) return offsets.error();
  hsize_t size = 0;
  if (H5Fflush(file.id(), H5F_SCOPE_LOCAL) < 0 || H5Fget_filesize(file.id(), &size) < 0 || !file.close()) {
    return failure("finish the file");
  }
  TensorFileLayout layout;
  layout.metadata = metadata_around(spec, *offsets, size, *recording);
  layout.offsets = std::move(*offsets);
  layout.size = size;
  return layout;
}

}  // namespace everstep::storage
