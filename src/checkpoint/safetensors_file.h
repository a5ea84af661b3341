// Reads the tensors of a safetensors file.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/input_file.h"
#include "checkpoint/safetensors_header.h"
#include "paceline/tensor.h"

namespace paceline {

/// An open file whose header was read and checked. Values are read when they are asked for. Any
/// number of threads may use it.
class SafetensorsFile {
 public:
  /// Throws as InputFile does, and kDataLoss if the file's content is damaged. Errors name the
  /// path; kDataLoss also names the tensor.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const InputFile& file() const { return file_; }
  /// Returns the tensors in the order in which they lie in the file.
  std::span<const StoredTensor> tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Returns the tensor of this name. Throws kNotFound naming the path, the tensor and the nearest
  /// name.
  const StoredTensor& tensor(std::string_view name) const;

  Tensor read(const StoredTensor& tensor) const;
  /// Reads the bytes of a tensor from `offset` on. Throws kInvalidArgument if the tensor has fewer
  /// bytes, and kDataLoss if a bool is neither 0 nor 1.
  void read(const StoredTensor& tensor, std::uint64_t offset, std::span<std::byte> into) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
  std::uint64_t data_offset_ = 0;
  std::map<std::string_view, const StoredTensor*> by_name_;
};

}  // namespace paceline
