#include "base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as many as the system follows

/// The place to which the text for a path is written.
struct Destination {
  std::string path;               // the path behind symbolic links; the file need not exist
  bool through = false;           // true if the text is written to it, since no file can replace it
  std::optional<int> descriptor;  // a descriptor of this process, such as 1 for /dev/stdout
};

bool holds_descriptors(const std::string& folder) {
  return folder.starts_with("/proc/") && folder.ends_with("/fd");
}

std::optional<int> descriptor_of(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  if (folder != fs::canonical("/proc/self/fd", none)) return std::nullopt;
  const std::string name = file.filename();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

bool is_special(const fs::path& file) {
  std::error_code none;
  const fs::file_status status = fs::status(file, none);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

Destination destination_of(const std::string& path) {
  std::error_code none;
  fs::path file = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path parent = file.has_parent_path() ? file.parent_path() : ".";
    const fs::path folder = fs::canonical(parent, none);
    // A link in a folder of descriptors leads to an open file, and not to a file's name.
    if (holds_descriptors(folder)) return {file, true, descriptor_of(file, folder)};
    if (!fs::is_symlink(fs::symlink_status(file, none))) break;
    file = parent / fs::read_symlink(file, none);
  }
  return {file, is_special(file), std::nullopt};
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(std::size_t(written));
  }
  return true;
}

bool write_file(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = write_all(file, text);
  const int why = errno;  // close may overwrite errno
  const bool closed = close(file) == 0;
  if (!written) errno = why;
  return written && closed;
}

bool write_through(const Destination& destination, std::string_view text) {
  if (!destination.descriptor) return write_file(destination.path, text);
  std::fflush(stdout);  // earlier output is written first
  return write_all(*destination.descriptor, text);
}

bool write_beside(const std::string& path, std::string_view text) {
  const std::string unfinished = path + ".part";
  if (write_file(unfinished, text) && std::rename(unfinished.c_str(), path.c_str()) == 0) {
    return true;
  }
  const int why = errno;
  std::remove(unfinished.c_str());
  errno = why;
  return false;
}

}  // namespace

void write_text_file(std::string_view what, const std::string& path, std::string_view text) {
  const Destination destination = destination_of(path);
  const bool written =
      destination.through ? write_through(destination, text) : write_beside(destination.path, text);
  if (written) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{} {} cannot be written: {}", what, path,
                                                   std::generic_category().message(errno)));
}

bool is_written_through(const std::string& path) { return destination_of(path).through; }

std::string why_none_is_made_beside(const std::string& path) {
  const std::string beside = behind_links(path) + ".test";
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return errno == EEXIST ? "" : std::generic_category().message(errno);
  close(file);
  std::remove(beside.c_str());
  return "";
}

std::string behind_links(const std::string& path) { return destination_of(path).path; }

}  // namespace paceline
