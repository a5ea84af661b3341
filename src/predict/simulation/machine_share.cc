#include "predict/simulation/machine_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

constexpr double kRounding = 1e-10;  // rounding error, in seconds
// The seconds for which a thread runs before another thread gets its core.
constexpr double kSlice = 3e-3;

Duration rounded_up(double seconds) { return Duration(std::int64_t(std::ceil(seconds * 1e9))); }

double pass_seconds(double bytes, double all, double of_thread, double threads) {
  if (bytes <= 0 || all <= 0) return 0;
  return bytes / (of_thread > 0 ? std::min(all, threads * of_thread) : all);
}

}  // namespace

double MachineShare::memory_seconds(const SimulatedWork& work, double threads) const {
  return pass_seconds(work.bytes, machine_.bytes_per_s, machine_.thread_bytes_per_s, threads) +
         pass_seconds(work.rule_bytes, machine_.rate_of_rules(),
                      machine_.rule_bytes_per_s > 0 ? machine_.thread_rule_bytes_per_s
                                                    : machine_.thread_bytes_per_s,
                      threads);
}

double MachineShare::threads_of(const SimulatedWork& work) const {
  return std::min(double(work.threads), most_threads());
}

double MachineShare::seconds_alone(const SimulatedWork& work) const {
  const double threads = threads_of(work);
  return std::max(work.core_seconds / threads, memory_seconds(work, threads));
}

void MachineShare::run(const SimulatedWork& work, std::function<void()> done) {
  const double seconds = seconds_alone(work), threads = threads_of(work);
  if (seconds <= kRounding) return time_.after(Duration(0), std::move(done));
  advance();
  Running added{.left = seconds,
                .rate = 0,
                .seconds = seconds,
                .bytes = work.bytes + work.rule_bytes,
                .memory = memory_seconds(work, threads) / seconds,
                .full_memory = memory_seconds(work, most_threads()) / seconds,
                .threads = threads,
                .done = std::move(done)};
  if (seconds > kSlice) {
    long_.push_back(std::move(added));
  } else {
    short_.emplace(time_.uniform(), std::move(added));
  }
  set_rates();
}

void MachineShare::advance() {
  const double passed = seconds_of(time_.now() - advanced_);
  advanced_ = time_.now();
  for (Running* each : served_) {
    const double made = std::min(each->left, each->rate * passed);
    each->left -= made;
    core_seconds_ += each->threads * made;
    bytes_ += each->bytes * made / each->seconds;
    memory_seconds_ += each->full_memory * made;
  }
}

// Gives work its rate, as long as there are cores. Short work gets cores first, since a scheduler
// lets it run to its end within one time slice. Other work shares the remaining cores in proportion
// to its threads. If all work together wants more than the memory's rate, each work waits longer
// for the memory, in proportion.
void MachineShare::set_rates() {
  served_.clear();
  double left = machine_.cores;
  for (auto next = short_.begin(); next != short_.end() && left > 0; ++next) {
    Running& each = next->second;
    const double given = std::min(each.threads, left);
    left -= given;
    each.rate = given / each.threads;
    served_.push_back(&each);
  }
  double threads = 0;
  for (const Running& each : long_) threads += each.threads;
  for (Running& each : long_) {
    if (left <= 0) break;
    each.rate = std::min(1.0, left / threads);
    served_.push_back(&each);
  }
  if (served_.empty()) return;
  double wanted = 0;
  for (const Running* each : served_) wanted += each->rate * each->full_memory;
  double first = std::numeric_limits<double>::infinity();
  for (Running* each : served_) {
    if (wanted > 1) each->rate /= 1 - each->memory + each->memory * wanted;
    first = std::min(first, each->left / each->rate);
  }
  const TimePoint at = time_.now() + rounded_up(first);
  if (looks_at_ && *looks_at_ <= at) return;  // the call at that time plans the next one itself
  looks_at_ = at;
  time_.at(at, [this, plan = ++plan_] { finish(plan); });
}

void MachineShare::finish(std::uint64_t plan) {
  if (plan != plan_) return;
  looks_at_.reset();
  advance();
  std::vector<std::function<void()>> done;
  const auto take_done = [&](Running& each) {
    if (each.left > kRounding) return false;
    done.push_back(std::move(each.done));
    return true;
  };
  for (auto next = short_.begin(); next != short_.end() && next->second.rate > 0;) {
    next = take_done(next->second) ? short_.erase(next) : std::next(next);
  }
  std::erase_if(long_, take_done);
  set_rates();
  for (const auto& act : done) act();
}

}  // namespace paceline
