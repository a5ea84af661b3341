#include "checkpoint/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void refuse_file(const InputFile& file, const std::string& why) {
  throw Error(ErrorCode::kDataLoss, fmt::format("{} is no safetensors file: {}", file.path(), why));
}

std::uint64_t header_bytes(const InputFile& file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length)) {
    refuse_file(file, fmt::format("it has {} bytes, the header's length alone takes {}",
                                  file.size(), sizeof(length)));
  }
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes || length > file.size() - sizeof(length)) {
    refuse_file(file, fmt::format("its header is to take {} bytes of {} (at most {})", length,
                                  file.size(), kMaxHeaderBytes));
  }
  return length;
}

bool is_no_bool(std::byte byte) { return byte > std::byte{1}; }

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  std::string json(header_bytes(file_), '\0');
  file_.read_at(kHeaderLengthBytes, std::as_writable_bytes(std::span(json)));
  data_offset_ = kHeaderLengthBytes + json.size();
  header_ = parse_header(json, file_.size() - data_offset_, path);
  for (const StoredTensor& tensor : header_.tensors) by_name_[tensor.name] = &tensor;
}

const StoredTensor& SafetensorsFile::tensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return *found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, tensor] : by_name_) names.push_back(known);
  throw Error(ErrorCode::kNotFound,
              fmt::format("{} has no tensor '{}'{}", path(), name, did_you_mean(name, names)));
}

Tensor SafetensorsFile::read(const StoredTensor& tensor) const {
  Tensor values(tensor.dtype, tensor.shape);
  read(tensor, 0, {static_cast<std::byte*>(values.raw()), values.bytes()});
  return values;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::uint64_t offset,
                           std::span<std::byte> into) const {
  if (offset > tensor.bytes() || into.size() > tensor.bytes() - offset) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} bytes from {} of tensor '{}', which has {}", path(),
                            into.size(), offset, tensor.name, tensor.bytes()));
  }
  file_.read_at(data_offset_ + tensor.offset + offset, into);
  if (tensor.dtype == DType::kBool && std::ranges::any_of(into, is_no_bool)) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("{}: tensor '{}' is of bool and holds a byte that "
                            "is neither 0 nor 1",
                            path(), tensor.name));
  }
}

}  // namespace paceline
