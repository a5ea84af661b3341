#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/grouped_digits.h"
#include "checkpoint/input_file.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

void check_format(const RecordFormat& format) {
  const ImageSize& size = format.size;
  constexpr std::int64_t kMost = 1 << 15;  // so that no product overflows
  const auto fits = [](std::int64_t value) { return value >= 1 && value <= kMost; };
  if (fits(size.height) && fits(size.width) && fits(size.channels) && format.classes >= 1 &&
      format.label_bytes >= 0 && format.label_bytes <= kMost) {
    return;
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("[records] there are no records of {} label bytes and {}x{} pixels of {} "
                  "channels in {} classes",
                  format.label_bytes, size.height, size.width, size.channels, format.classes));
}

[[noreturn]] void throw_label(const std::string& name, int label, std::int32_t classes) {
  throw Error(ErrorCode::kDataLoss,
              fmt::format("{} has label {}; labels are below {}", name, label, classes));
}

class RecordFiles : public RecordSource {
 public:
  RecordFiles(const std::vector<std::string>& files, const RecordFormat& format)
      : format_(format), bytes_(format.label_bytes + format.size.values()) {
    check_format(format);
    for (const std::string& file : files) add(file);
    if (files_.empty()) throw Error(ErrorCode::kInvalidArgument, "[records] there is no file");
  }

  std::vector<std::int64_t> files() const override {
    std::vector<std::int64_t> records;
    for (const auto& file : files_) records.push_back(records_in(file));
    return records;
  }

  void read(std::int64_t index, Example& to) const override {
    const auto& [file, first] = file_with(index);
    to.memory.resize(std::size_t(bytes_));
    file.read_at(std::uint64_t((index - first) * bytes_),
                 std::as_writable_bytes(std::span(to.memory)));
    to.bytes = std::span(to.memory).subspan(std::size_t(format_.label_bytes));
    to.size = format_.size;
    to.layout = format_.layout;
    to.label = format_.label_bytes > 0 ? to.memory[std::size_t(format_.label_bytes - 1)] : 0;
    if (to.label >= format_.classes) throw_label(name(index), to.label, format_.classes);
  }

  std::string name(std::int64_t index) const override {
    const auto& [file, first] = file_with(index);
    return fmt::format("{}, record {}", file.path(), index - first);
  }

 private:
  struct File {
    InputFile file;
    std::int64_t first = 0;  // the index of its first record
  };

  void add(const std::string& path) {
    InputFile file(path);
    if (file.size() == 0) throw Error(ErrorCode::kDataLoss, path + " is empty");
    if (file.size() % std::uint64_t(bytes_) != 0) {
      throw Error(
          ErrorCode::kDataLoss,
          fmt::format("{} has {} bytes, which is no whole number of records of {} bytes: it "
                      "is truncated, or of another format",
                      path, grouped_digits(std::int64_t(file.size())), bytes_));
    }
    const std::int64_t first = files_.empty() ? 0 : files_.back().first + records_in(files_.back());
    files_.push_back({std::move(file), first});
  }

  std::int64_t records_in(const File& file) const {
    return std::int64_t(file.file.size()) / bytes_;
  }

  const File& file_with(std::int64_t index) const {
    return *(std::ranges::upper_bound(files_, index, {}, &File::first) - 1);
  }

  RecordFormat format_;
  std::int64_t bytes_;  // of a record
  std::vector<File> files_;
};

class ImagesInMemory : public RecordSource {
 public:
  ImagesInMemory(std::vector<std::uint8_t> pixels, std::vector<std::int32_t> labels,
                 const RecordFormat& format)
      : format_(format), pixels_(std::move(pixels)), labels_(std::move(labels)) {
    check_format(format);
    if (labels_.empty() || pixels_.size() != labels_.size() * std::size_t(format.size.values())) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[images] {} values are not {} images of {}", pixels_.size(),
                              labels_.size(), format.size.values()));
    }
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::int32_t label = labels_[i];
      if (label >= 0 && label < format.classes) continue;
      throw Error(ErrorCode::kInvalidArgument, fmt::format("[images] image {} has label {}; labels "
                                                           "are below {}",
                                                           i, label, format.classes));
    }
  }

  std::vector<std::int64_t> files() const override { return {std::int64_t(labels_.size())}; }

  void read(std::int64_t index, Example& to) const override {
    const auto values = std::size_t(format_.size.values());
    to.bytes = std::span(pixels_).subspan(std::size_t(index) * values, values);
    to.size = format_.size;
    to.layout = format_.layout;
    to.label = labels_[std::size_t(index)];
  }

  std::string name(std::int64_t index) const override {
    return fmt::format("image {} in memory", index);
  }

 private:
  RecordFormat format_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

std::shared_ptr<const RecordSource> record_files(const std::vector<std::string>& files,
                                                 const RecordFormat& format) {
  return std::make_shared<RecordFiles>(files, format);
}

std::shared_ptr<const RecordSource> images_in_memory(std::vector<std::uint8_t> pixels,
                                                     std::vector<std::int32_t> labels,
                                                     const RecordFormat& format) {
  return std::make_shared<ImagesInMemory>(std::move(pixels), std::move(labels), format);
}

}  // namespace paceline
