#include "trace/pressure_counters.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "trace/proc_text.h"

namespace paceline {
namespace {

constexpr double kNanosecond = 1e-9, kMicrosecond = 1e-6;

// Adds the time of one thread, if the system tells it.
void add_thread(const std::string& path, PressureCounters& sum) {
  std::ifstream file(path);
  double ran = 0, queued = 0;
  if (!(file >> ran >> queued)) return;
  sum.ran = sum.ran.value_or(0) + ran * kNanosecond;
  sum.queued = sum.queued.value_or(0) + queued * kNanosecond;
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
  // A thread may end while it is read.
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    add_thread(thread.path().string() + "/schedstat", counters);
  }
  const double ticks_per_s = double(sysconf(_SC_CLK_TCK));
  if (const auto ticks = busy_ticks(proc_text("/proc/stat"))) {
    counters.machine_ran = double(*ticks) / ticks_per_s;
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) counters.major_faults = usage.ru_majflt;
  counters.memory_wait = stalled_seconds(proc_text("/proc/pressure/memory"));
  return counters;
}

std::optional<double> queued_seconds(std::int64_t thread) {
  PressureCounters own;
  add_thread("/proc/self/task/" + std::to_string(thread) + "/schedstat", own);
  return own.queued;
}

std::int64_t this_thread() { return gettid(); }

}  // namespace paceline
