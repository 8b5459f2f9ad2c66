#include "storage/hdf5/hdf5_recording.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace everstep::storage {
namespace {

constexpr haddr_t kLargestAddress = haddr_t{1} << 62;

// What the driver hands from the access properties to open(): libhdf5 copies and frees it.
struct DriverInfo {
  std::shared_ptr<Hdf5Recording> recording;
};

// libhdf5 keeps its own fields in the base. It may close a file as late as at exit, hence the share.
struct RecordedFile : H5FD_t {
  std::shared_ptr<Hdf5Recording> recording;
  haddr_t end_of_allocation = 0;
  haddr_t end_of_file = 0;
};

RecordedFile& recorded(H5FD_t* file) { return *static_cast<RecordedFile*>(file); }
const RecordedFile& recorded(const H5FD_t* file) { return *static_cast<const RecordedFile*>(file); }

// libhdf5 is C: no exception may pass through it.
void* copy_info(const void* info) { return new (std::nothrow) DriverInfo(*static_cast<const DriverInfo*>(info)); }

herr_t free_info(void* info) {
  delete static_cast<DriverInfo*>(info);
  return 0;
}

H5FD_t* open_file(const char*, unsigned, hid_t access_properties, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access_properties));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) RecordedFile{};
  if (file != nullptr) file->recording = info->recording;
  return file;
}

herr_t close_file(H5FD_t* file) {
  delete &recorded(file);
  return 0;
}

// Metadata comes from blocks of its own, so that it lies together.
herr_t query_features(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA;
  return 0;
}

haddr_t end_of_allocation(const H5FD_t* file, H5FD_mem_t) { return recorded(file).end_of_allocation; }
haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) { return recorded(file).end_of_file; }

herr_t allocate_until(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  recorded(file).end_of_allocation = address;
  return 0;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* buffer) {
  recorded(file).recording->read(address, {static_cast<std::byte*>(buffer), size});
  return 0;
}

herr_t write_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* buffer) {
  try {
    recorded(file).recording->write(address, {static_cast<const std::byte*>(buffer), size});
  } catch (const std::exception&) {
    return -1;
  }
  recorded(file).end_of_file = std::max<haddr_t>(recorded(file).end_of_file, address + size);
  return 0;
}

herr_t end_at_allocation(H5FD_t* file, hid_t, hbool_t) {
  recorded(file).end_of_file = recorded(file).end_of_allocation;
  return 0;
}

hid_t register_driver() {
  H5FD_class_t driver = {};
  driver.name = "everstep_recording";
  driver.maxaddr = kLargestAddress;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.fapl_copy = copy_info;
  driver.fapl_free = free_info;
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query_features;
  driver.get_eoa = end_of_allocation;
  driver.set_eoa = allocate_until;
  driver.get_eof = end_of_file;
  driver.read = read_file;
  driver.write = write_file;
  driver.truncate = end_at_allocation;
  return H5FDregister(&driver);
}

}  // namespace

void Hdf5Recording::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t within = offset % kPage;
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), kPage - within));
    std::copy(part.begin(), part.end(), pages_[offset / kPage].begin() + static_cast<std::ptrdiff_t>(within));
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
}

void Hdf5Recording::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  const std::uint64_t end = offset + bytes.size();
  for (auto page = pages_.lower_bound(offset / kPage); page != pages_.end() && page->first * kPage < end; ++page) {
    const std::uint64_t begin_here = std::max(offset, page->first * kPage);
    const std::uint64_t end_here = std::min(end, (page->first + 1) * kPage);
    std::copy_n(page->second.begin() + static_cast<std::ptrdiff_t>(begin_here - page->first * kPage),
                end_here - begin_here, bytes.begin() + static_cast<std::ptrdiff_t>(begin_here - offset));
  }
}

Hdf5Recording::Extent Hdf5Recording::extent(std::uint64_t begin, std::uint64_t end) const {
  Extent found;
  std::uint64_t found_end = 0;
  for (auto page = pages_.lower_bound(begin / kPage); page != pages_.end() && page->first * kPage < end; ++page) {
    for (std::uint64_t within = 0; within < kPage; ++within) {
      const std::uint64_t offset = page->first * kPage + within;
      if (offset < begin || offset >= end || page->second[within] == std::byte{0}) continue;
      if (found_end == 0) found.offset = offset;
      found_end = offset + 1;
    }
  }
  found.bytes.resize(found_end == 0 ? 0 : found_end - found.offset);
  read(found.offset, found.bytes);
  return found;
}

bool record_into(std::shared_ptr<Hdf5Recording> recording, hid_t access_properties) {
  static const hid_t driver = register_driver();
  const DriverInfo info{std::move(recording)};
  return driver >= 0 && H5Pset_driver(access_properties, driver, &info) >= 0;
}

}  // namespace everstep::storage
