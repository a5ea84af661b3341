#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "checkpoint/input_file.h"
#include "data/image_part.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(kImageFormats, [&](const ImageFormat* format) {
    return std::ranges::find(format->endings, ending) != format->endings.end();
  });
}

bool leads_nowhere(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_symlink(ignored) && !entry.exists(ignored);
}

/// The sorted names in a folder, except those that begin with a dot.
struct Listing {
  std::vector<std::string> folders, images, links_to_nowhere, others;

  explicit Listing(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      add(*entry);
    }
    if (error) {
      throw Error(ErrorCode::kNotFound, fmt::format("cannot list the images in {}: {}",
                                                    folder.string(), error.message()));
    }
    for (auto* names : {&folders, &images, &links_to_nowhere, &others}) std::ranges::sort(*names);
  }

 private:
  void add(const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) return;
    std::error_code ignored;
    if (entry.is_directory(ignored)) {
      folders.push_back(name);
    } else if (is_image(entry.path())) {
      images.push_back(name);
    } else {
      (leads_nowhere(entry) ? links_to_nowhere : others).push_back(name);
    }
  }
};

/// Files and folders in image folders that are not used.
class LeftOut {
 public:
  void add_files(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const std::string ending = fs::path(name).extension().string();
      ++files_[ending.empty() ? "without an ending" : ending];
    }
  }
  // Adds what the folder of a class holds beside its images.
  void add_of_class(const Listing& listing) {
    add_files(listing.links_to_nowhere);
    add_files(listing.others);
    folders_ += listing.folders.size();
  }
  // Returns a text such as "3 .gif, 1 without an ending, 2 folders".
  std::string str() const {
    std::string text;
    const auto add = [&text](std::size_t count, std::string_view what) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    };
    for (const auto& [ending, count] : files_) add(count, ending);
    if (folders_ > 0) add(folders_, folders_ == 1 ? "folder" : "folders");
    return text;
  }

 private:
  std::map<std::string, std::size_t> files_;  // by ending
  std::size_t folders_ = 0;
};

std::string all_endings() {
  std::vector<std::string_view> endings;
  for (const ImageFormat* format : kImageFormats) {
    endings.insert(endings.end(), format->endings.begin(), format->endings.end());
  }
  return fmt::format("{}", fmt::join(endings, ", "));
}

void read_encoded(const std::string& path, Example& to) {
  const InputFile file(path);
  to.memory.resize(file.size());
  file.read_at(0, std::as_writable_bytes(std::span(to.memory)));
  to.bytes = to.memory;
  to.size = {0, 0, 0};
}

class ImageFolder : public RecordSource {
 public:
  ImageFolder(std::string folder, const std::vector<std::string>& classes)
      : folder_(std::move(folder)), classes_(classes) {
    const Listing listing((fs::path(folder_)));
    const std::vector<std::string>& found = listing.folders;
    if (!listing.links_to_nowhere.empty()) refuse_link(listing.links_to_nowhere.front());
    left_out_.add_files(listing.images);
    left_out_.add_files(listing.others);
    if (found.size() < 2 && classes_.empty()) refuse_classes(found);
    if (classes_.empty()) classes_ = found;
    for (const std::string& name : found) add_class(name);
    if (files_.empty()) refuse_classes(found);
  }

  std::vector<std::int64_t> files() const override { return {std::int64_t(files_.size())}; }
  std::vector<std::string> classes() const override { return classes_; }
  std::string left_out() const override { return left_out_.str(); }
  std::string name(std::int64_t index) const override {
    const File& file = files_[std::size_t(index)];
    return (fs::path(folder_) / classes_[std::size_t(file.label)] / file.name).string();
  }

  void read(std::int64_t index, Example& to) const override {
    read_encoded(name(index), to);
    to.label = files_[std::size_t(index)].label;
  }

 private:
  struct File {
    std::string name;
    std::int32_t label;
  };

  [[noreturn]] void refuse_link(const std::string& name) const {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}/{} is a link to what is not there", folder_, name));
  }

  [[noreturn]] void refuse_classes(const std::vector<std::string>& found) const {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} holds {}: images are in one folder for each class, such as "
                    "{}/cat/1.jpg and {}/dog/1.jpg",
                    folder_,
                    found.empty() ? "no folder" : fmt::format("only the class '{}'", found.front()),
                    folder_, folder_));
  }

  [[noreturn]] void refuse_class(const std::string& name, const Listing& listing) const {
    LeftOut held;
    held.add_of_class(listing);
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the class '{}' of {} holds no image ({}): it {}", name, folder_, all_endings(),
                    held.str().empty() ? "is empty" : "holds " + held.str()));
  }

  void add_class(const std::string& name) {
    const auto known = std::ranges::find(classes_, name);
    if (known == classes_.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} holds the class '{}', which the training data does not have",
                              folder_, name));
    }
    const Listing listing(fs::path(folder_) / name);
    if (listing.images.empty()) refuse_class(name, listing);
    left_out_.add_of_class(listing);
    for (const std::string& image : listing.images) {
      files_.push_back({image, std::int32_t(known - classes_.begin())});
    }
  }

  const std::string folder_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
  LeftOut left_out_;
};

class ImageFiles : public RecordSource {
 public:
  explicit ImageFiles(const std::string& path) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      throw Error(ErrorCode::kNotFound, fmt::format("there is no file or folder {}", path));
    }
    if (!fs::is_directory(path, error)) {
      paths_.push_back(path);
      return;
    }
    add_folder(path);
    if (!paths_.empty()) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} holds no image ({}){}", path, all_endings(),
                            left_out().empty() ? "" : ", but " + left_out()));
  }

  std::vector<std::int64_t> files() const override { return {std::int64_t(paths_.size())}; }
  std::string left_out() const override { return left_out_.str(); }
  std::string name(std::int64_t index) const override { return paths_[std::size_t(index)]; }
  void read(std::int64_t index, Example& to) const override {
    read_encoded(name(index), to);
    to.label = 0;
  }

 private:
  void add_folder(const fs::path& folder) {
    if (!seen_.insert(fs::canonical(folder)).second) return;  // a link leads back to it
    const Listing listing(folder);
    left_out_.add_files(listing.links_to_nowhere);
    left_out_.add_files(listing.others);
    for (const std::string& image : listing.images) paths_.push_back((folder / image).string());
    for (const std::string& name : listing.folders) add_folder(folder / name);
  }

  std::set<fs::path> seen_;
  std::vector<std::string> paths_;
  LeftOut left_out_;
};

}  // namespace

std::shared_ptr<const RecordSource> image_files(const std::string& path) {
  return std::make_shared<ImageFiles>(path);
}

std::shared_ptr<const RecordSource> image_folder(const std::string& folder,
                                                 const std::vector<std::string>& classes) {
  return std::make_shared<ImageFolder>(folder, classes);
}

}  // namespace paceline
