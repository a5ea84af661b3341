#include "launch/line_prefixer.h"

#include <unistd.h>

#include <cerrno>
#include <memory>

namespace paceline {

namespace {

// A line longer than this is cut, so that a task that never ends its line does not take all memory.
constexpr std::size_t kLongestLine = 1 << 20;

}  // namespace

void LinePrefixer::add(std::string_view chunk) {
  unfinished_ += chunk;
  std::size_t begin = 0;
  for (std::size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos;) {
    write_line(std::string_view(unfinished_).substr(begin, end - begin));
    begin = end + 1;
  }
  unfinished_.erase(0, begin);
  if (unfinished_.size() > kLongestLine) finish();
}

void LinePrefixer::finish() {
  if (unfinished_.empty()) return;
  write_line(unfinished_);
  unfinished_.clear();
}

void LinePrefixer::write_line(std::string_view line) {
  std::string whole = prefix_;
  whole.append(line).push_back('\n');
  for (std::string_view rest = whole; !rest.empty();) {
    const ssize_t written = write(fd_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) rest.remove_prefix(std::size_t(written));
  }
}

TaskOutput prefixed_lines(const std::string& prefix, int fd) {
  const auto lines = std::make_shared<LinePrefixer>(prefix, fd);
  return {[lines](std::string_view chunk) { lines->add(chunk); }, [lines] { lines->finish(); }};
}

}  // namespace paceline
