#include "predict/simulation/machine_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

constexpr double kRounding = 1e-10;  // seconds

Duration rounded_up(double seconds) { return Duration(std::int64_t(std::ceil(seconds * 1e9))); }

}  // namespace

double MachineShare::seconds_alone(const SimulatedWork& work) const {
  const double threads = std::min(double(work.threads), std::max(1.0, machine_.cores));
  double seconds = work.core_seconds / threads;
  if (machine_.bytes_per_s > 0 && work.bytes > 0) {
    double rate = machine_.bytes_per_s;
    if (machine_.thread_bytes_per_s > 0)
      rate = std::min(rate, threads * machine_.thread_bytes_per_s);
    seconds = std::max(seconds, work.bytes / rate);
  }
  return seconds;
}

void MachineShare::run(const SimulatedWork& work, std::function<void()> done) {
  const double seconds = seconds_alone(work);
  if (seconds <= kRounding) return time_.after(Duration(0), std::move(done));
  advance();
  running_.push_back({seconds, 0, seconds, work.bytes, work.threads, std::move(done)});
  set_rates();
}

void MachineShare::advance() {
  const double passed = seconds_of(time_.now() - advanced_);
  advanced_ = time_.now();
  for (Running& each : running_) {
    const double made = std::min(each.left, each.rate * passed);
    each.left -= made;
    core_seconds_ += each.threads * made;
    bytes_ += each.bytes * made / each.seconds;
  }
}

// Cores are given by threads. Of the time of a work on its cores, the part in which it would use
// all of the memory's rate grows as others want the memory too.
void MachineShare::set_rates() {
  double threads = 0, wanted = 0;
  for (const Running& each : running_) threads += each.threads;
  const double share = threads > machine_.cores ? machine_.cores / threads : 1;
  if (machine_.bytes_per_s > 0) {
    for (const Running& each : running_) {
      wanted += share * each.bytes / each.seconds / machine_.bytes_per_s;
    }
  }
  double first = std::numeric_limits<double>::infinity();
  for (Running& each : running_) {
    double slower = 1;
    if (wanted > 1) {
      const double part = std::min(1.0, each.bytes / each.seconds / machine_.bytes_per_s);
      slower = 1 - part + part * wanted;
    }
    each.rate = share / slower;
    first = std::min(first, each.left / each.rate);
  }
  if (running_.empty()) return;
  time_.after(rounded_up(first), [this, plan = ++plan_] { finish(plan); });
}

void MachineShare::finish(std::uint64_t plan) {
  if (plan != plan_) return;
  advance();
  std::vector<std::function<void()>> done;
  std::erase_if(running_, [&](Running& each) {
    if (each.left > kRounding) return false;
    done.push_back(std::move(each.done));
    return true;
  });
  set_rates();
  for (const auto& act : done) act();
}

}  // namespace paceline
