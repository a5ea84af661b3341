#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "checkpoint/input_file.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Names in `folder` that `wanted` takes, sorted.
std::vector<std::string> names_in(const fs::path& folder,
                                  const std::function<bool(const fs::directory_entry&)>& wanted) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && wanted(*entry)) names.push_back(name);
  }
  if (error) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("cannot list the images in {}: {}", folder.string(), error.message()));
  }
  std::ranges::sort(names);
  return names;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

bool is_image(const fs::directory_entry& entry) {
  std::string ending = entry.path().extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  std::error_code ignored;
  return (ending == ".jpg" || ending == ".jpeg" || ending == ".png") &&
         entry.is_regular_file(ignored);
}

class ImageFolder : public RecordSource {
 public:
  ImageFolder(std::string folder, const std::vector<std::string>& classes)
      : folder_(std::move(folder)), classes_(classes) {
    const std::vector<std::string> found = names_in(folder_, is_folder);
    if (found.size() < 2 && classes_.empty()) refuse_classes(found);
    if (classes_.empty()) classes_ = found;
    for (const std::string& name : found) add_class(name);
    if (files_.empty()) refuse_classes(found);
  }

  std::vector<std::int64_t> files() const override { return {std::int64_t(files_.size())}; }
  std::vector<std::string> classes() const override { return classes_; }
  std::string name(std::int64_t index) const override {
    const File& file = files_[std::size_t(index)];
    return (fs::path(folder_) / classes_[std::size_t(file.label)] / file.name).string();
  }

  void read(std::int64_t index, Example& to) const override {
    const InputFile file(name(index));
    to.memory.resize(file.size());
    file.read_at(0, std::as_writable_bytes(std::span(to.memory)));
    to.bytes = to.memory;
    to.size = {0, 0, 0};
    to.label = files_[std::size_t(index)].label;
  }

 private:
  struct File {
    std::string name;
    std::int32_t label;
  };

  [[noreturn]] void refuse_classes(const std::vector<std::string>& found) const {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} holds {}: images are in one folder for each class, such as "
                    "{}/cat/1.jpg and {}/dog/1.jpg",
                    folder_,
                    found.empty() ? "no folder" : fmt::format("only the class '{}'", found.front()),
                    folder_, folder_));
  }

  void add_class(const std::string& name) {
    const auto known = std::ranges::find(classes_, name);
    if (known == classes_.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} holds the class '{}', which the training data does not have",
                              folder_, name));
    }
    const std::vector<std::string> images = names_in(fs::path(folder_) / name, is_image);
    if (images.empty()) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("the class '{}' of {} holds no .jpg, .jpeg or .png file", name, folder_));
    }
    for (const std::string& image : images) {
      files_.push_back({image, std::int32_t(known - classes_.begin())});
    }
  }

  const std::string folder_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

}  // namespace

std::shared_ptr<const RecordSource> image_folder(const std::string& folder,
                                                 const std::vector<std::string>& classes) {
  return std::make_shared<ImageFolder>(folder, classes);
}

}  // namespace paceline
