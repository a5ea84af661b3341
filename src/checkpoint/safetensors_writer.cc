#include "checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <unordered_map>

#include "paceline/error.h"

namespace paceline {

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors,
                                     std::map<std::string, std::string> metadata, const Disk& disk)
    : tensors_(std::move(tensors)), file_(path, disk) {
  const SafetensorsHeader header = lay_out(tensors_, std::move(metadata));
  const std::string start = encode_header(header);
  std::unordered_map<std::string_view, std::uint64_t> offsets;
  for (const StoredTensor& tensor : header.tensors) {
    offsets[tensor.name] = start.size() + tensor.offset;
  }
  bytes_ = start.size();
  for (const TensorInfo& tensor : tensors_) {
    progress_.push_back({offsets[tensor.name], 0, tensor.bytes()});
    bytes_ += tensor.bytes();
  }
  file_.write_at(std::as_bytes(std::span(start)), 0);
}

void SafetensorsWriter::write(std::size_t tensor, std::span<const std::byte> bytes) {
  Progress& progress = progress_.at(tensor);
  if (bytes.size() > progress.bytes - progress.written) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: tensor '{}' takes {} bytes, it was given {}", file_.path(),
                    tensors_[tensor].name, progress.bytes, progress.written + bytes.size()));
  }
  file_.write_at(bytes, progress.offset + progress.written);
  progress.written += bytes.size();
}

WrittenFile SafetensorsWriter::finish() {
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    if (progress_[i].written == progress_[i].bytes) continue;
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("{}: tensor '{}' takes {} bytes, it was given {}", file_.path(),
                            tensors_[i].name, progress_[i].bytes, progress_[i].written));
  }
  WrittenFile written{std::filesystem::path(file_.path()).filename(), bytes_,
                      file_.checksum(bytes_)};
  file_.commit();
  return written;
}

WrittenFile write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                              std::map<std::string, std::string> metadata, const Disk& disk) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : tensors)
    infos.push_back({name, tensor.dtype(), tensor.shape()});
  SafetensorsWriter writer(path, std::move(infos), std::move(metadata), disk);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    writer.write(i, {static_cast<const std::byte*>(tensor.raw()), tensor.bytes()});
  }
  return writer.finish();
}

}  // namespace paceline
