#include "trace/use_meter.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>

#include "trace/proc_text.h"

namespace paceline {
namespace {

double seconds_of(const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) * 1e-6; }

template <typename Number>
std::optional<Number> difference(std::optional<Number> after, std::optional<Number> before) {
  if (!after || !before) return std::nullopt;
  return *after - *before;
}

std::optional<std::int64_t> peak_memory() {
  constexpr std::int64_t kKilobyte = 1024;
  const auto kilobytes = number_behind(proc_text("/proc/self/status"), "VmHWM:");
  if (!kilobytes) return std::nullopt;
  return *kilobytes * kKilobyte;
}

}  // namespace

std::optional<std::int64_t> number_behind(const std::string& text, const std::string& key) {
  // Finds the key only at the start of a line, since a longer key may end in the same letters.
  std::size_t at = text.starts_with(key) ? 0 : text.find("\n" + key);
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_not_of(" \t", text.find(key, at) + key.size());
  if (at == std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

UseMeter::Counters UseMeter::count() const {
  Counters counters;
  counters.time = std::chrono::steady_clock::now();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  counters.core_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  const std::string io = proc_text("/proc/self/io");
  counters.disk_read = number_behind(io, "read_bytes:");
  counters.disk_written = number_behind(io, "write_bytes:");
  counters.pressure = read_pressure_counters();
  counters.waited = queued_seconds(thread_);
  return counters;
}

void UseMeter::start() {
  const std::lock_guard lock(mutex_);
  if (begun_) return;
  thread_ = calling_thread();
  begun_ = count();
  stop_watch_ = std::make_unique<StopWatch>();
}

Pressure UseMeter::pressure(const Counters& now, double seconds) const {
  Pressure made{.stops = stop_watch_->stops()};
  const PressureCounters &after = now.pressure, &before = begun_->pressure;
  made.queued = queued_share(before, after);
  if (seconds <= 0) return made;
  const auto rate = [&](auto end, auto begin) -> std::optional<double> {
    const auto passed = difference(end, begin);
    return passed ? std::optional(double(*passed) / seconds) : std::nullopt;
  };
  made.waited = rate(now.waited, begun_->waited);
  made.machine_cores = rate(after.machine_ran, before.machine_ran);
  made.major_faults = rate(after.major_faults, before.major_faults);
  made.memory_wait = rate(after.memory_wait, before.memory_wait);
  made.disk_wait = rate(after.disk_wait, before.disk_wait);
  return made;
}

std::optional<MachineUse> UseMeter::measure() const {
  const std::lock_guard lock(mutex_);
  if (!begun_) return std::nullopt;
  const Counters now = count();
  const double seconds = std::chrono::duration<double>(now.time - begun_->time).count();
  return MachineUse{.seconds = seconds,
                    .core_seconds = now.core_seconds - begun_->core_seconds,
                    .disk_read = difference(now.disk_read, begun_->disk_read),
                    .disk_written = difference(now.disk_written, begun_->disk_written),
                    .peak_memory = peak_memory(),
                    .pressure = pressure(now, seconds)};
}

}  // namespace paceline
