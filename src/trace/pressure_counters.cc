#include "trace/pressure_counters.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "trace/proc_text.h"

namespace paceline {
namespace {

constexpr double kNanosecond = 1e-9, kMicrosecond = 1e-6;

// Adds the time of one thread, if the system tells it. Allocates nothing, since a run asks for one
// thread several times a second while it makes steps.
void add_thread(const char* path, PressureCounters& sum) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 96> text;
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  const char* const end = text.data() + std::max<ssize_t>(bytes, 0);
  std::int64_t ran = 0, queued = 0;
  const auto first = std::from_chars(text.data(), end, ran);
  if (first.ec != std::errc() || first.ptr == end) return;
  if (std::from_chars(first.ptr + 1, end, queued).ec != std::errc()) return;
  sum.ran = sum.ran.value_or(0) + double(ran) * kNanosecond;
  sum.queued = sum.queued.value_or(0) + double(queued) * kNanosecond;
}

}  // namespace

std::optional<std::int64_t> busy_ticks(const std::string& stat) {
  std::istringstream line(stat);
  std::string name;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft_irq = 0;
  if (!(line >> name >> user >> nice >> system >> idle >> io >> irq >> soft_irq) || name != "cpu") {
    return std::nullopt;
  }
  return user + nice + system + irq + soft_irq;
}

std::optional<double> stalled_seconds(const std::string& pressure) {
  const std::size_t at = pressure.find("total=");
  if (!pressure.starts_with("some") || at == std::string::npos) return std::nullopt;
  std::istringstream number(pressure.substr(at + 6));
  double microseconds = 0;
  if (!(number >> microseconds)) return std::nullopt;
  return microseconds * kMicrosecond;
}

PressureCounters read_pressure_counters() {
  PressureCounters counters;
  std::error_code ignored;
  // A thread may end while its file is read.
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    add_thread((thread.path().string() + "/schedstat").c_str(), counters);
  }
  const double ticks_per_s = double(sysconf(_SC_CLK_TCK));
  if (const auto ticks = busy_ticks(proc_text("/proc/stat"))) {
    counters.machine_ran = double(*ticks) / ticks_per_s;
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) counters.major_faults = usage.ru_majflt;
  counters.memory_wait = stalled_seconds(proc_text("/proc/pressure/memory"));
  counters.disk_wait = stalled_seconds(proc_text("/proc/pressure/io"));
  return counters;
}

std::optional<double> queued_seconds(std::int64_t thread) {
  PressureCounters own;
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/self/task/%lld/schedstat",
                static_cast<long long>(thread));
  add_thread(path.data(), own);
  return own.queued;
}

std::int64_t calling_thread() { return gettid(); }

std::optional<double> queued_share(const PressureCounters& before, const PressureCounters& after) {
  if (!before.queued || !after.queued) return std::nullopt;
  const double ran = std::max(0.0, after.ran.value_or(0) - before.ran.value_or(0));
  const double queued = *after.queued - *before.queued;
  if (ran + queued <= 0) return std::nullopt;
  return std::max(0.0, queued) / (ran + queued);
}

}  // namespace paceline
