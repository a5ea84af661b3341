// The header of a safetensors file: which tensors it holds and where. The format is that of
// https://github.com/huggingface/safetensors: 8 bytes N (little-endian), N bytes of JSON, data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/tensor.h"

namespace paceline {

/// The description of a tensor in a file.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t bytes() const { return std::uint64_t(shape.elements()) * size_of(dtype); }
  bool operator==(const TensorInfo&) const = default;
};

/// Row-major at `offset` bytes from the start of the data.
struct StoredTensor : TensorInfo {
  std::uint64_t offset = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            // by offset
  std::map<std::string, std::string> metadata;  // the file's own "__metadata__"
};

/// Bytes of the number N at the start of a file.
constexpr std::size_t kHeaderLengthBytes = 8;
/// No header is longer; the limit of the format's first library.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

/// Lays tensors out one after the other in this order of element sizes, the largest first, so that
/// each is aligned to its own; among equals in the order given.
SafetensorsHeader lay_out(std::span<const TensorInfo> tensors,
                          std::map<std::string, std::string> metadata);
/// N and the JSON, padded with spaces to a multiple of 64 bytes. Throws kInvalidArgument naming the
/// tensor when a name is empty, given twice, no UTF-8 or "__metadata__".
std::string encode_header(const SafetensorsHeader& header);
/// Reads the JSON of a file with `data_bytes` bytes behind it. Throws kDataLoss that begins with
/// `path` and names the tensor: a dtype that Paceline has not, a shape that does not fit the
/// offsets, offsets out of range, overlapping or leaving a hole, bytes that no tensor holds.
SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes,
                               const std::string& path);

}  // namespace paceline
