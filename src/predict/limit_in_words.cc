#include "predict/limit_in_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/printed.h"
#include "predict/simulation/shared_variables.h"

namespace paceline {
namespace {

constexpr double kUsedUp = 0.88;  // of what there is

class JobLimits {
 public:
  JobLimits(const PredictedJob& hosts, const SimulatedJob& job, const SimulatedSpeed& speed)
      : hosts_(hosts), job_(job), speed_(speed) {}

  NamedLimit found() const {
    using enum Limit;
    const Limit device_kind = job_.step->threads > 0 ? kKernels : kDevices;
    const Part parts[] = {{kLink, &JobLimits::link},           {kStraggler, &JobLimits::straggler},
                          {device_kind, &JobLimits::device},   {kRules, &JobLimits::applying},
                          {kTransport, &JobLimits::transport}, {kMemory, &JobLimits::memory},
                          {kCores, &JobLimits::cores}};
    for (const auto& [kind, text_of] : parts) {
      if (std::string text = (this->*text_of)(); !text.empty()) return {kind, std::move(text)};
    }
    return waiting();
  }

 private:
  struct Part {
    Limit kind;
    std::string (JobLimits::*text_of)() const;
  };
  int workers() const { return int(job_.cluster.workers.size()); }
  double step_ms() const { return 1e3 * workers() / speed_.steps_per_s; }

  std::string owner(std::size_t host) const {
    for (std::size_t ps = 0; ps < job_.cluster.ps.size(); ++ps) {
      if (job_.cluster.ps[ps] == int(host)) return fmt::format("ps:{}'s link", ps);
    }
    return fmt::format("the link of {}", hosts_.hosts[host].name);
  }

  std::string link() const {
    const auto is_full = [](double rate, double moved) {
      return rate > 0 && moved >= kUsedUp * rate;
    };
    for (std::size_t host = 0; host < job_.cluster.hosts.size(); ++host) {
      const SimulatedHost& it = job_.cluster.hosts[host];
      const double sends = it.link_bytes_per_s, receives = it.receives_per_s();
      const double sent = speed_.use.sent[host], received = speed_.use.received[host];
      const bool sends_all = is_full(sends, sent), receives_all = is_full(receives, received);
      if (!sends_all && !receives_all) continue;
      const bool out = sends_all && (!receives_all || sent >= received);
      return full_link(owner(host), out ? sends : receives, out ? sent : received);
    }
    for (std::size_t i = 0; i < job_.cluster.pairs.size(); ++i) {
      const SimulatedPair& pair = job_.cluster.pairs[i];
      if (!is_full(pair.bytes_per_s, speed_.use.carried[i])) continue;
      const auto name = [&](int host) { return hosts_.hosts[std::size_t(host)].name; };
      return full_link(fmt::format("the network from {} to {}", name(pair.from), name(pair.to)),
                       pair.bytes_per_s, speed_.use.carried[i]);
    }
    return {};
  }

  std::string full_link(const std::string& which, double rate, double moved) const {
    const double wanted = moved / speed_.steps_per_s * workers() / job_.step->seconds();
    return fmt::format("{} carries {} MB/s; {} ask{} for {}", which, rounded(rate * 1e-6, 3),
                       counted(workers(), "worker"), workers() == 1 ? "s" : "",
                       rounded(wanted * 1e-6, 3));
  }

  // One that computes all the time while the others wait for it.
  std::string straggler() const {
    const double device = job_.step->seconds();
    for (int w = 0; w < workers(); ++w) {
      const double slowness = job_.cluster.slowness_of(w);
      const double busy = speed_.workers[std::size_t(w)] * device * slowness;
      if (slowness == 1 || busy < kUsedUp || speed_.use.device >= kUsedUp) continue;
      return fmt::format(
          "worker:{}, whose steps take {:.3g} times as long as those of the others, "
          "which wait for it",
          w, slowness);
    }
    return {};
  }

  std::string device() const {
    if (speed_.use.device < kUsedUp) return {};
    if (job_.step->threads > 0) {
      return fmt::format("the cores: kernels take {:.0f}% of the time", 100 * speed_.use.device);
    }
    return fmt::format("the devices compute {:.0f}% of the time", 100 * speed_.use.device);
  }

  std::string applying() const {
    for (std::size_t ps = 0; ps < speed_.use.applying.size(); ++ps) {
      if (speed_.use.applying[ps] < kUsedUp) continue;
      const SimulatedStep shared = kind_of(job_).makes_local_steps ? outer_step(job_) : *job_.step;
      const double bytes = std::accumulate(
          shared.variables.begin(), shared.variables.end(), 0.0,
          [](double sum, const StepVariable& each) { return sum + each.rule_bytes; });
      return fmt::format("ps:{} applies rules {:.0f}% of the time: an update passes over {} MB", ps,
                         std::min(100.0, 100 * speed_.use.applying[ps]),
                         rounded(bytes * 1e-6 / double(speed_.use.applying.size()), 3));
    }
    return {};
  }

  std::string transport() const {
    if (job_.costs.stream_bytes_per_s == 0 && job_.costs.serial_message_s == 0) return {};
    const double messages = double(job_.step->specs.size()) * job_.costs.serial_message_s;
    double bytes = 0;
    for (const VariableSpec& spec : job_.step->specs) bytes += 8.0 * double(spec.shape.elements());
    const double rate = 2 * job_.costs.stream_bytes_per_s;  // of both ways
    const double stream = rate > 0 ? bytes / rate : 0;
    if (std::max(messages, stream) < 0.2 * 1e-3 * step_ms()) return {};
    if (messages > stream) {
      return fmt::format("the transport: {} messages a step take {} ms", job_.step->specs.size(),
                         rounded(1e3 * messages, 3));
    }
    return fmt::format("the transport: {} MB a step at {} MB/s take {} ms",
                       rounded(bytes * 1e-6, 3), rounded(rate * 1e-6, 3), rounded(1e3 * stream, 3));
  }

  std::string memory() const {
    for (std::size_t m = 0; m < speed_.use.memory.size(); ++m) {
      if (speed_.use.memory[m] < kUsedUp) continue;
      return fmt::format("the memory moves {:.0f} GB/s, which rules and kernels want",
                         speed_.use.moved[m] * 1e-9);
    }
    return {};
  }

  std::string cores() const {
    for (std::size_t m = 0; m < speed_.use.cores.size(); ++m) {
      if (speed_.use.cores[m] < kUsedUp) continue;
      const double cores = job_.cluster.machines[m].cores;
      const std::string those =
          cores == 1 ? "the core is" : fmt::format("the {:.0f} cores are", cores);
      return fmt::format("{} busy {:.0f}% of the time", those, 100 * speed_.use.cores[m]);
    }
    return {};
  }

  std::string exchanges() const {
    const SimulatedUse& use = speed_.use;
    const double waits = use.values + use.answer + use.others;
    if (waits < use.rules) {
      return fmt::format("kernels take {:.0f}%, rules and exchanges {:.0f}% of the time",
                         100 * use.device, 100 * use.rules);
    }
    const auto steps = double(job_.strategy.local_steps);
    return fmt::format("of each {} ms, in which {} steps are made, workers wait {} for {}",
                       rounded(steps * step_ms(), 3), job_.strategy.local_steps,
                       rounded(steps * step_ms() * waits, 3),
                       job_.strategy.outer_async ? "new values" : "the mean of all");
  }

  // Nothing is used up: a step is a chain of things that follow one another.
  NamedLimit waiting() const {
    const SimulatedUse& use = speed_.use;
    if (workers() == 1 && job_.cluster.ps.empty()) {
      return {Limit::kAlone, fmt::format("kernels take {:.0f}%, rules {:.0f}% of the time",
                                         100 * use.device, 100 * use.rules)};
    }
    if (kind_of(job_).makes_local_steps) return {Limit::kExchanges, exchanges()};
    const double waits = step_ms() * (use.values + use.answer);
    if (use.others > use.values + use.answer) {
      return {Limit::kOthers,
              fmt::format("workers wait {} of {} ms for one another",
                          rounded(use.others * step_ms(), 3), rounded(step_ms(), 3))};
    }
    return {Limit::kAnswers, fmt::format("each step waits {} of {} ms for its "
                                         "contributions to be applied and answered",
                                         rounded(waits, 3), rounded(step_ms(), 3))};
  }

  const PredictedJob& hosts_;
  const SimulatedJob& job_;
  const SimulatedSpeed& speed_;
};

}  // namespace

NamedLimit limit_in_words(const PredictedJob& hosts, const SimulatedJob& job,
                          const SimulatedSpeed& speed) {
  return JobLimits(hosts, job, speed).found();
}

}  // namespace paceline
