#include "checkpoint/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/buffer.h"
#include "checkpoint/data_loss.h"
#include "checkpoint/strict_json.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMetadata = "__metadata__";
constexpr int kHeaderDepth = 3;  // header, tensor, shape
constexpr std::size_t kHeaderMultiple = 64;

// The names that the format has for types, indexed by DType.
constexpr std::array<std::string_view, kDTypeCount> kCodes = {"F32", "F64", "BF16", "F16",
                                                              "I32", "I64", "U8",   "BOOL"};

DType dtype_of(const std::string& code, const std::string& what) {
  const auto found = std::ranges::find(kCodes, code);
  if (found == kCodes.end()) {
    data_loss(what, fmt::format("dtype '{}' is not known ({})", code, fmt::join(kCodes, ", ")));
  }
  return DType(found - kCodes.begin());
}

StoredTensor tensor_of(const std::string& name, const Json& value, std::uint64_t data_bytes,
                       const std::string& path) {
  const std::string what = fmt::format("{}: tensor '{}'", path, name);
  StoredTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype_of(text_of(member(value, "dtype", what), what), what);
  tensor.shape = shape_of(member(value, "shape", what), what);
  const Json& offsets = member(value, "data_offsets", what);
  if (!offsets.is_array() || offsets.size() != 2)
    data_loss(what, "data_offsets are not two numbers");
  tensor.offset = std::uint64_t(whole_number(offsets[0], what + ", data_offsets"));
  const auto end = std::uint64_t(whole_number(offsets[1], what + ", data_offsets"));
  if (tensor.offset > end || end > data_bytes) {
    data_loss(what, fmt::format("its data_offsets {} to {} are not within the {} bytes of data",
                                tensor.offset, end, data_bytes));
  }
  const std::uint64_t bytes = end - tensor.offset;
  // The number of elements is checked first, since the number of their bytes may overflow.
  if (std::uint64_t(tensor.shape.elements()) > bytes || tensor.bytes() != bytes) {
    data_loss(what, fmt::format("{} {} does not take the {} bytes that its data_offsets say",
                                tensor.shape.str(), name_of(tensor.dtype), bytes));
  }
  return tensor;
}

std::map<std::string, std::string> metadata_of(const Json& value, const std::string& path) {
  const std::string what = path + ": __metadata__";
  if (!value.is_object()) data_loss(what, "it is no object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items())
    metadata[key] = text_of(text, fmt::format("{} {}", what, key));
  return metadata;
}

// Checks that tensors, ordered by offset, cover every byte of the data exactly once.
void check_cover(const std::vector<StoredTensor>& tensors, std::uint64_t data_bytes,
                 const std::string& path) {
  std::uint64_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::string what = fmt::format("{}: tensor '{}'", path, tensor.name);
    if (tensor.offset < end) data_loss(what, "overlaps the one before it");
    if (tensor.offset > end) {
      data_loss(what, fmt::format("a hole of {} bytes is before it", tensor.offset - end));
    }
    end = tensor.offset + tensor.bytes();
  }
  if (end != data_bytes) {
    data_loss(path, fmt::format("{} bytes at its end belong to no tensor", data_bytes - end));
  }
}

std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[checkpoint] the name '{}' is no UTF-8", text));
  }
}

std::string entry_of(const StoredTensor& tensor) {
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                     quoted(tensor.name), kCodes[std::size_t(tensor.dtype)],
                     fmt::join(tensor.shape.dims(), ","), tensor.offset,
                     tensor.offset + tensor.bytes());
}

void check_names(const std::vector<StoredTensor>& tensors) {
  std::set<std::string_view> names = {"", kMetadata};
  for (const StoredTensor& tensor : tensors) {
    if (names.insert(tensor.name).second) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[checkpoint] a tensor cannot have the name '{}'{}", tensor.name,
                            tensor.name.empty() || tensor.name == kMetadata ? "" : " twice"));
  }
}

}  // namespace

SafetensorsHeader lay_out(std::span<const TensorInfo> tensors,
                          std::map<std::string, std::string> metadata) {
  SafetensorsHeader header;
  header.metadata = std::move(metadata);
  for (const TensorInfo& tensor : tensors) header.tensors.push_back({tensor, 0});
  std::ranges::stable_sort(header.tensors, std::ranges::greater{},
                           [](const StoredTensor& tensor) { return size_of(tensor.dtype); });
  std::uint64_t end = 0;
  for (StoredTensor& tensor : header.tensors) {
    tensor.offset = end;
    end += tensor.bytes();
  }
  return header;
}

std::string encode_header(const SafetensorsHeader& header) {
  check_names(header.tensors);
  std::vector<std::string> entries;
  std::vector<std::string> metadata;
  for (const auto& [key, text] : header.metadata) {
    metadata.push_back(quoted(key) + ":" + quoted(text));
  }
  if (!metadata.empty()) {
    entries.push_back(fmt::format("\"{}\":{{{}}}", kMetadata, fmt::join(metadata, ",")));
  }
  for (const StoredTensor& tensor : header.tensors) entries.push_back(entry_of(tensor));
  std::string text = fmt::format("{:8}{{{}}}", "", fmt::join(entries, ","));
  text.resize(round_up(text.size(), kHeaderMultiple), ' ');
  const std::uint64_t length = text.size() - kHeaderLengthBytes;
  std::memcpy(text.data(), &length, sizeof(length));
  return text;
}

SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes,
                               const std::string& path) {
  const Json object = parse_strict(json, path + ": header", kHeaderDepth);
  SafetensorsHeader header;
  for (const auto& [name, value] : object.items()) {
    if (name == kMetadata) {
      header.metadata = metadata_of(value, path);
    } else {
      header.tensors.push_back(tensor_of(name, value, data_bytes, path));
    }
  }
  // An empty tensor comes before another one at the same place, since it takes no byte.
  std::ranges::sort(header.tensors, {}, [](const StoredTensor& tensor) {
    return std::pair(tensor.offset, tensor.bytes());
  });
  check_cover(header.tensors, data_bytes, path);
  return header;
}

}  // namespace paceline
