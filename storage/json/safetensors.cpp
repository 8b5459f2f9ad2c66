#include "storage/json/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "storage/json/json.h"
#include "storage/json/json_reader.h"

namespace everstep::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so are tensors in memory");

using Entry = SafetensorsFile::Entry;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = std::uint64_t{16} << 20;
constexpr std::size_t kAlignment = 8;
constexpr const char* kMetadata = "__metadata__";
constexpr std::int64_t kLastOffset = std::int64_t{1} << 50;

std::string_view name_of(ElementType type) { return type == ElementType::kFloat32 ? "F32" : "BF16"; }

std::optional<ElementType> parse_type(std::string_view text) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    if (text == name_of(type)) return type;
  }
  return std::nullopt;
}

// Length and JSON, filled up with blanks so that the tensors are aligned.
Result<std::string> header_of(const std::vector<TensorSpec>& tensors) {
  Json header = Json::object();
  // Readers of Hugging Face ask who wrote the file: "pt" has PyTorch's layout of tensors, as ours have.
  header.set(kMetadata, Json::object().set("format", "pt"));
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    EVERSTEP_TRY(check(tensor));
    if (tensor.type == ElementType::kInt64) return invalid_argument("the tensor '" + tensor.name + "' is no float");
    if (header.find(tensor.name) != nullptr) return invalid_argument("the tensor '" + tensor.name + "' is there twice");
    Json shape = Json::array();
    for (const std::int64_t dimension : tensor.shape) shape.append(dimension);
    Json entry = Json::object();
    entry.set("dtype", name_of(tensor.type)).set("shape", std::move(shape));
    entry.set("data_offsets", Json::array().append(offset).append(offset + tensor.bytes()));
    header.set(tensor.name, std::move(entry));
    offset += tensor.bytes();
  }
  std::string text = to_text(header, 0);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string length(kLengthBytes, '\0');
  const std::uint64_t size = text.size();
  std::memcpy(length.data(), &size, kLengthBytes);
  return length + text;
}

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<Extent> read_extent(const JsonReader& reader) {
  const auto offsets = reader.elements_at("data_offsets");
  if (!offsets) return offsets.error();
  if (offsets->size() != 2) return reader.error("data_offsets must be two numbers");
  const auto begin = (*offsets)[0].integer(0, kLastOffset);
  if (!begin) return begin.error();
  const auto end = (*offsets)[1].integer(*begin, kLastOffset);
  if (!end) return end.error();
  return Extent{static_cast<std::uint64_t>(*begin), static_cast<std::uint64_t>(*end)};
}

// Nothing for a tensor whose type is not ours.
Result<std::optional<TensorSpec>> read_tensor(const std::string& name, const JsonReader& reader, const Extent& extent) {
  EVERSTEP_TRY(reader.only({"dtype", "shape", "data_offsets"}));
  const auto dtype = reader.text_at("dtype");
  if (!dtype) return dtype.error();
  if (*dtype == "F16") return reader.error("float16 is not supported: store the model as float32 or bfloat16");
  const auto type = parse_type(*dtype);
  if (!type) return std::optional<TensorSpec>();
  TensorSpec tensor{name, *type, {}};
  const auto shape = reader.elements_at("shape");
  if (!shape) return shape.error();
  for (const JsonReader& dimension : *shape) {
    const auto size = dimension.integer(1);
    if (!size) return size.error();
    tensor.shape.push_back(*size);
  }
  EVERSTEP_TRY(check(tensor));
  if (extent.end - extent.begin != tensor.bytes()) return reader.error("type and shape do not fit data_offsets");
  return std::optional(std::move(tensor));
}

// Every byte behind the header belongs to exactly one tensor.
Status check_cover(std::vector<Extent> extents, std::uint64_t size) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != end) return invalid_argument("tensors overlap, or there is a gap between them");
    end = extent.end;
  }
  if (end == size) return {};
  return invalid_argument("tensors end at byte " + std::to_string(end) + " of " + std::to_string(size));
}

Result<std::string> read_header_text(const ReadableFile& file) {
  if (file.size() < kLengthBytes) return invalid_argument("the file is too short for a safetensors header");
  std::array<std::byte, kLengthBytes> length_bytes{};
  EVERSTEP_TRY(file.read(0, length_bytes));
  const auto length = std::bit_cast<std::uint64_t>(length_bytes);
  if (length > kLargestHeader || length > file.size() - kLengthBytes) {
    return invalid_argument("its header claims " + std::to_string(length) + " bytes: this is no safetensors file");
  }
  std::string text(length, '\0');
  EVERSTEP_TRY(file.read(kLengthBytes, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

Status write_safetensors(FileSystem& files, std::string_view path, const std::vector<TensorSpec>& tensors,
                         const TensorBytes& bytes, const std::function<bool(std::uint64_t bytes)>& progress) {
  const auto header = header_of(tensors);
  if (!header) return header.error();
  auto file = files.create(path);
  if (!file) return file.error();
  WritableFile& output = **file;
  EVERSTEP_TRY(output.write(std::as_bytes(std::span(*header))));
  std::uint64_t written = header->size();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto tensor = bytes(i);
    if (!tensor) return tensor.error();
    EVERSTEP_CHECK(tensor->size() == tensors[i].bytes(), "the bytes fit the spec of " + tensors[i].name);
    EVERSTEP_TRY(output.write(*tensor));
    written += tensor->size();
    if (progress && !progress(written)) return Error{ErrorCode::kCancelled, "writing " + std::string(path), ""};
  }
  return output.sync();
}

const Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.tensor.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

Result<SafetensorsFile> read_safetensors_header(const ReadableFile& file) {
  const auto text = read_header_text(file);
  if (!text) return text.error();
  const auto header = parse_json(*text);
  if (!header) return header.error();
  const auto* members = std::get_if<Json::Object>(&header->value());
  if (members == nullptr) return invalid_argument("its header is no object");

  const std::uint64_t data = kLengthBytes + text->size();
  const JsonReader root(*header);
  SafetensorsFile content;
  std::vector<Extent> extents;
  for (const JsonMember& member : *members) {
    if (member.name == kMetadata) continue;
    const auto reader = root.member(member.name);
    const auto extent = read_extent(*reader);
    if (!extent) return extent.error();
    const auto tensor = read_tensor(member.name, *reader, *extent);
    if (!tensor) return tensor.error();
    extents.push_back(*extent);
    if (*tensor) content.entries.push_back({**tensor, data + extent->begin});
  }
  EVERSTEP_TRY(check_cover(std::move(extents), file.size() - data));
  std::sort(content.entries.begin(), content.entries.end(),
            [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
  return content;
}

}  // namespace everstep::storage
