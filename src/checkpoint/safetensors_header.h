// The header of a safetensors file, which says which tensors the file holds and where. The format
// is that of https://github.com/huggingface/safetensors: 8 bytes N (little-endian), N bytes of
// JSON, data.
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

/// A tensor in row-major order, `offset` bytes from the start of the data.
struct StoredTensor : TensorInfo {
  std::uint64_t offset = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            // ordered by offset
  std::map<std::string, std::string> metadata;  // the file's own "__metadata__"
};

/// The size in bytes of the number N at the start of a file.
constexpr std::size_t kHeaderLengthBytes = 8;
/// The most bytes of a header, as in the format's first library; a longer header is refused.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

/// Lays tensors out one after the other, those with the largest elements first, so that each tensor
/// is aligned to its elements. Tensors with elements of equal size keep their order.
SafetensorsHeader lay_out(std::span<const TensorInfo> tensors,
                          std::map<std::string, std::string> metadata);
/// Returns N and the JSON, padded with spaces to a multiple of 64 bytes. Throws kInvalidArgument
/// naming the tensor if a name is empty, appears twice, is no UTF-8, or is "__metadata__".
std::string encode_header(const SafetensorsHeader& header);
/// Reads the JSON of a file in which `data_bytes` bytes follow it. Throws kDataLoss that begins
/// with `path` and names the tensor: for a type that Paceline does not have, a shape that does not
/// fit the offsets, offsets that are out of range, overlap or leave a hole, and bytes that no
/// tensor holds.
SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes,
                               const std::string& path);

}  // namespace paceline
