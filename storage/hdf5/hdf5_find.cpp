#include "storage/hdf5/hdf5_find.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "storage/hdf5/hdf5_header.h"
#include "storage/hdf5/hdf5_messages.h"
#include "storage/hdf5/hdf5_object_check.h"

namespace everstep::storage {
namespace {

using Bytes = std::span<const std::byte>;

AttributeMessages file_attributes(const TensorFileAttributes& attributes) {
  AttributeMessages messages;
  messages["job"] = text_attribute_message("job", attributes.job);
  messages["kind"] = text_attribute_message("kind", attributes.kind);
  messages["block"] = number_attribute_message("block", attributes.block);
  messages["position"] = number_attribute_message("position", attributes.position);
  messages["version"] = number_attribute_message("version", attributes.version);
  messages["format"] = number_attribute_message("format", attributes.format);
  return messages;
}

struct Link {
  std::string name;
  std::uint64_t address = 0;
};

Result<Link> read_link(Bytes body, const std::string& group) {
  constexpr std::uint64_t kHasType = 0x08;
  Hdf5Cursor cursor(body);
  const std::uint64_t version = cursor.number(1);
  const std::uint64_t flags = cursor.number(1);
  if (version == 1 && (flags & kHasType) != 0) {
    const std::uint64_t type = cursor.number(1);
    const char* kind = type == 1 ? "a soft link" : type == 64 ? "an external link" : "a user-defined link";
    return damaged("has " + std::string(kind) + " in " + group);
  }
  const std::uint64_t size = cursor.number(1);
  std::string name(cursor.text(size));
  const std::uint64_t address = cursor.number(8);
  if (version != 1 || flags != 0 || !cursor.at_end()) return damaged("has an unexpected kind of link in " + group);
  if (name.find('/') != std::string::npos) return damaged("has a link with '/' in its name in " + group);
  return Link{std::move(name), address};
}

// Finds what the spec names from the root on; whatever else is there is an error.
class TensorFinder final {
 public:
  TensorFinder(Bytes file, const TensorFileSpec& expected) : reader_(file), expected_(expected) {
    for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
      const std::string_view name = expected.tensors[i].name;
      tensors_.emplace(name, i);
      if (const std::size_t slash = name.find('/'); slash != std::string_view::npos) {
        missing_groups_.emplace(name.substr(0, slash));
      }
    }
    offsets_.resize(expected.tensors.size());
  }

  Result<std::vector<std::uint64_t>> find() {
    const auto root = reader_.read_superblock();
    if (!root) return root.error();
    EVERSTEP_TRY(read_group(*root, "", file_attributes(expected_.attributes)));
    if (!tensors_.empty()) return damaged("lacks the tensor '" + std::string(tensors_.begin()->first) + "'");
    return std::move(offsets_);
  }

 private:
  // `prefix` is "" for the root and "group/" else.
  Status read_group(std::uint64_t address, const std::string& prefix, AttributeMessages attributes) {
    const std::string object = prefix.empty() ? "the root group" : "the group " + quoted_name(prefix);
    const auto messages = reader_.read_object(address, object);
    if (!messages) return messages.error();
    Hdf5ObjectCheck check(object, std::move(attributes));
    for (const auto& [type, body] : *messages) {
      switch (type) {
        case Hdf5MessageType::kLinkInfo:
          EVERSTEP_TRY(check.must_be(body, link_info_message(), type, "links outside its header"));
          break;
        case Hdf5MessageType::kAttributeInfo:
          EVERSTEP_TRY(check.must_be(body, attribute_info_message(), type, "attributes outside its header"));
          break;
        case Hdf5MessageType::kGroupInfo:  // hints for writers
          EVERSTEP_TRY(check.once(type));
          break;
        case Hdf5MessageType::kAttribute:
          EVERSTEP_TRY(check.attribute(body));
          break;
        case Hdf5MessageType::kLink:
          EVERSTEP_TRY(follow(body, prefix, object));
          break;
        default:
          return check.unexpected(type);
      }
    }
    return check.complete({Hdf5MessageType::kLinkInfo, Hdf5MessageType::kGroupInfo});
  }

  Status follow(Bytes body, const std::string& prefix, const std::string& object) {
    const auto link = read_link(body, object);
    if (!link) return link.error();
    const std::string name = prefix + link->name;
    if (const auto tensor = tensors_.find(name); tensor != tensors_.end()) {
      const std::size_t index = tensor->second;
      tensors_.erase(tensor);
      return read_tensor(link->address, index);
    }
    const auto group = missing_groups_.find(name);
    if (group == missing_groups_.end()) return damaged("has an unexpected link " + quoted_name(name));
    missing_groups_.erase(group);
    return read_group(link->address, name + "/", {});
  }

  Status read_tensor(std::uint64_t address, std::size_t index) {
    const TensorSpec& tensor = expected_.tensors[index];
    const std::string object = "the tensor '" + tensor.name + "'";
    const auto messages = reader_.read_object(address, object);
    if (!messages) return messages.error();
    Hdf5ObjectCheck check(object, {{"dtype", text_attribute_message("dtype", to_string(tensor.type))}});
    for (const auto& [type, body] : *messages) {
      switch (type) {
        case Hdf5MessageType::kDataspace:
          EVERSTEP_TRY(check.must_be(body, dataspace_message(tensor.shape), type, "another shape than expected"));
          break;
        case Hdf5MessageType::kDatatype:
          EVERSTEP_TRY(check.must_be(body, datatype_message(tensor.type), type, "another type than expected"));
          break;
        case Hdf5MessageType::kFillValue:
          EVERSTEP_TRY(check.must_be(body, fill_value_message(), type, "a fill value"));
          break;
        case Hdf5MessageType::kAttributeInfo:
          EVERSTEP_TRY(check.must_be(body, attribute_info_message(), type, "attributes outside its header"));
          break;
        case Hdf5MessageType::kAttribute:
          EVERSTEP_TRY(check.attribute(body));
          break;
        case Hdf5MessageType::kLayout:
          EVERSTEP_TRY(check.once(type));
          EVERSTEP_TRY(read_layout(body, index, object));
          break;
        case Hdf5MessageType::kExternalFiles:
          return damaged("keeps the bytes of " + object + " in other files");
        case Hdf5MessageType::kFilters:
          return damaged("has filters for " + object);
        default:
          return check.unexpected(type);
      }
    }
    return check.complete({Hdf5MessageType::kDataspace, Hdf5MessageType::kDatatype, Hdf5MessageType::kFillValue,
                           Hdf5MessageType::kLayout});
  }

  Status read_layout(Bytes body, std::size_t index, const std::string& object) {
    constexpr std::uint64_t kContiguous = 1;
    Hdf5Cursor cursor(body);
    const std::uint64_t version = cursor.number(1);
    const std::uint64_t kind = cursor.number(1);
    if (kind != kContiguous) return damaged("has " + object + " in another layout than contiguous");
    const std::uint64_t offset = cursor.number(8);
    const std::uint64_t size = cursor.number(8);
    if (version != 3 || !cursor.at_end()) return damaged("has a malformed layout of " + object);
    if (offset == kNoAddress) return damaged("has no bytes for " + object);
    const std::uint64_t bytes = expected_.tensors[index].bytes();
    if (size != bytes) {
      return damaged("has " + std::to_string(size) + " bytes for " + object + " instead of " + std::to_string(bytes));
    }
    const auto taken = reader_.take(offset, size, object);
    if (!taken) return taken.error();
    offsets_[index] = offset;
    return {};
  }

  Hdf5FileReader reader_;
  const TensorFileSpec& expected_;
  std::map<std::string, std::size_t, std::less<>> tensors_;  // not found yet
  std::set<std::string, std::less<>> missing_groups_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

Result<std::vector<std::uint64_t>> find_tensors_in_hdf5(Bytes file, const TensorFileSpec& expected) {
  return TensorFinder(file, expected).find();
}

}  // namespace everstep::storage
