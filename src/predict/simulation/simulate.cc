#include "predict/simulation/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "paceline/error.h"
#include "predict/simulation/simulated_tasks.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

constexpr double kSecondsOfAYear = 365.25 * 24 * 3600;
constexpr double kLongest = 1e8;  // seconds: some years

void check_strategy(const SimulatedJob& job) {
  const StrategyKind& kind = kind_of(job);
  if (kind.why_not_variables == nullptr) return;
  const std::string why = kind.why_not_variables(job.step->specs);
  if (why.empty()) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("--strategy {} {}", kind.name, why));
}

/// What the tasks have used of the hosts at some moment.
struct Used {
  TimePoint at{};
  std::vector<double> sent, received, carried, cores = {}, memory = {}, moved = {}, applying = {};
};

class Simulation {
 public:
  explicit Simulation(const SimulatedJob& job) : job_(job), tasks_(job) {}

  SimulatedSpeed run() {
    const auto warm = [&](const StepThread& thread) { return thread.steps() >= job_.warm_steps; };
    const auto done = [](const StepThread& thread) { return thread.finished(); };
    run_until(warm);
    const Used before = used();
    run_until(done);
    return speed(before, used());
  }

 private:
  template <typename Condition>
  void run_until(const Condition& holds) {
    constexpr std::uint64_t kEvery = 1024;  // events
    std::size_t first = 0;
    while (first < tasks_.threads().size()) {
      if (job_.gives_up && tasks_.time().events() % kEvery == 0 && job_.gives_up()) throw GivenUp();
      if (holds(*tasks_.threads()[first])) {
        ++first;
      } else if (tasks_.time().seconds() > kLongest) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("[predict] {} steps of each worker would take more than {:.0f} "
                                "years",
                                job_.warm_steps + job_.steps, kLongest / kSecondsOfAYear));
      } else if (!tasks_.time().run_one()) {
        throw Error(ErrorCode::kInternal, "[simulation] the steps are not made");
      }
    }
  }

  Used used() const {
    Used now{.at = tasks_.time().now(),
             .sent = tasks_.transport().network().sent(),
             .received = tasks_.transport().network().received(),
             .carried = tasks_.transport().network().carried(),
             .applying = tasks_.applying()};
    for (const auto& machine : tasks_.transport().machines()) {
      now.cores.push_back(machine->core_seconds());
      now.memory.push_back(machine->memory_seconds());
      now.moved.push_back(machine->bytes());
    }
    return now;
  }

  SimulatedSpeed speed(const Used& before, const Used& after) const {
    SimulatedSpeed speed{.events = tasks_.time().events()};
    double all = 0;
    for (const auto& thread : tasks_.threads()) {
      const double seconds = seconds_of(thread->counted_to() - thread->counted_from());
      speed.workers.push_back(double(job_.steps) / seconds);
      speed.steps_per_s += speed.workers.back();
      all += seconds;
      const SpentSeconds& spent = thread->spent();
      speed.use.device += spent.device;
      speed.use.rules += spent.rules;
      speed.use.values += spent.values;
      speed.use.answer += spent.answer;
      speed.use.others += spent.others;
    }
    for (double* each : {&speed.use.device, &speed.use.rules, &speed.use.values, &speed.use.answer,
                         &speed.use.others}) {
      *each /= all;
    }
    const double passed = seconds_of(after.at - before.at);
    const auto rates = [&](const std::vector<double>& from, const std::vector<double>& to) {
      std::vector<double> all_rates;
      for (std::size_t i = 0; i < to.size(); ++i) all_rates.push_back((to[i] - from[i]) / passed);
      return all_rates;
    };
    speed.use.sent = rates(before.sent, after.sent);
    speed.use.received = rates(before.received, after.received);
    speed.use.carried = rates(before.carried, after.carried);
    speed.use.cores = rates(before.cores, after.cores);
    speed.use.memory = rates(before.memory, after.memory);
    speed.use.moved = rates(before.moved, after.moved);
    speed.use.applying = rates(before.applying, after.applying);
    for (std::size_t i = 0; i < speed.use.cores.size(); ++i) {
      speed.use.cores[i] /= job_.cluster.machines[i].cores;
    }
    return speed;
  }

  const SimulatedJob& job_;
  SimulatedTasks tasks_;
};

}  // namespace

SimulatedSpeed simulate(const SimulatedJob& job) {
  check_strategy(job);
  return Simulation(job).run();
}

}  // namespace paceline
