#include "trace/use_meter.h"

#include <sys/resource.h>

#include <charconv>
#include <fstream>
#include <iterator>

namespace paceline {
namespace {

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

double seconds_of(const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; }

std::optional<std::int64_t> difference(std::optional<std::int64_t> after,
                                       std::optional<std::int64_t> before) {
  if (!after || !before) return std::nullopt;
  return *after - *before;
}

std::optional<std::int64_t> peak_memory() {
  constexpr std::int64_t kKilobyte = 1024;
  const auto kilobytes = number_behind(text_of_file("/proc/self/status"), "VmHWM:");
  if (!kilobytes) return std::nullopt;
  return *kilobytes * kKilobyte;
}

}  // namespace

std::optional<std::int64_t> number_behind(const std::string& text, const std::string& key) {
  // At the start of a line: the key may be the end of another one.
  std::size_t at = text.starts_with(key) ? 0 : text.find("\n" + key);
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_not_of(" \t", text.find(key, at) + key.size());
  if (at == std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

UseMeter::Counters UseMeter::count() {
  Counters counters;
  counters.time = std::chrono::steady_clock::now();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  counters.core_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  const std::string io = text_of_file("/proc/self/io");
  counters.disk_read = number_behind(io, "read_bytes:");
  counters.disk_written = number_behind(io, "write_bytes:");
  return counters;
}

void UseMeter::start() {
  const std::lock_guard lock(mutex_);
  if (!begun_) begun_ = count();
}

std::optional<MachineUse> UseMeter::measure() const {
  const std::lock_guard lock(mutex_);
  if (!begun_) return std::nullopt;
  const Counters now = count();
  return MachineUse{.seconds = std::chrono::duration<double>(now.time - begun_->time).count(),
                    .core_seconds = now.core_seconds - begun_->core_seconds,
                    .disk_read = difference(now.disk_read, begun_->disk_read),
                    .disk_written = difference(now.disk_written, begun_->disk_written),
                    .peak_memory = peak_memory()};
}

}  // namespace paceline
