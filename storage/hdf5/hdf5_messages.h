#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "storage/tensor_file.h"

// The bodies of the header messages that libhdf5 writes for what lay_out creates, byte for byte. All versions of
// libhdf5 since 1.8 write them so when they are held to the format of 1.8.
namespace everstep::storage {

using MessageBody = std::vector<std::byte>;

MessageBody datatype_message(ElementType type);
MessageBody dataspace_message(std::span<const std::int64_t> shape);
MessageBody fill_value_message();      // allocated early, never filled
MessageBody link_info_message();       // links in the header itself
MessageBody attribute_info_message();  // attributes in the header itself
MessageBody text_attribute_message(std::string_view name, std::string_view text);
MessageBody number_attribute_message(std::string_view name, std::int64_t number);

}  // namespace everstep::storage
