#include "predict/simulation/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/row_count.h"
#include "paceline/error.h"
#include "params/strategies.h"
#include "params/variable_arrays.h"
#include "predict/simulation/simulated_member.h"
#include "predict/simulation/simulated_ps.h"
#include "predict/simulation/simulated_worker.h"
#include "predict/simulation/single_process.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 5> kSimulated = {"local", "async", "ssp", "sync",
                                                        "allreduce"};

constexpr double kLongest = 1e6;  // seconds

AggregationSpec aggregation_of(const SimulatedJob& job) {
  AggregationSpec spec;
  if (job.way.strategy == "ssp")
    spec = {.kind = AggregationKind::kBounded, .staleness = job.way.staleness};
  if (job.way.strategy == "sync")
    spec = {.kind = AggregationKind::kRounds, .replicas = job.way.replicas};
  spec.num_ps = std::max(1, int(job.cluster.ps.size()));
  spec.coordinator = "ps:0";
  return spec;
}

void check_strategy(const SimulatedJob& job) {
  const std::string_view name = job.way.strategy;
  const bool local_steps = name == "local" && job.cluster.workers.size() > 1;
  if (!local_steps && std::ranges::find(kSimulated, name) != kSimulated.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[predict] the strategy '{}'{} cannot be predicted", name,
                          local_steps ? " of several workers, local steps," : ""));
}

/// What the tasks have used of the hosts at some moment.
struct Used {
  TimePoint at{};
  std::vector<double> sent, received, cores = {}, memory = {}, applying = {};
};

class Simulation {
 public:
  explicit Simulation(const SimulatedJob& job) : world_(job) {
    if (job.way.strategy == "allreduce") {
      make_members();
    } else if (job.cluster.ps.empty()) {
      add(std::make_unique<SingleProcess>(world_, 0));
    } else {
      make_ps_job();
    }
  }

  SimulatedSpeed run() {
    const auto warm = [&](const StepThread* thread) {
      return thread->steps() >= world_.job.warm_steps;
    };
    const auto done = [](const StepThread* thread) { return thread->finished(); };
    run_until(warm);
    const Used before = used();
    run_until(done);
    return speed(before, used());
  }

 private:
  void add(std::unique_ptr<StepThread> thread) {
    threads_.push_back(thread.get());
    owned_.push_back(std::move(thread));
    start(*static_cast<SingleProcess*>(threads_.back()));
  }
  void start(SingleProcess& process) {
    world_.time.after(Duration(0), [&process] { process.start(); });
  }
  // Workers never begin at one moment.
  Duration delay(int index) {
    double seconds = 0;
    for (const StepAction& action : world_.job.step->actions) seconds += action.seconds;
    return Duration(std::int64_t(1e9 * (1e-4 * index + world_.time.uniform() * seconds)));
  }
  void make_ps_job() {
    for (int i = 0; i < world_.num_ps(); ++i) {
      world_.ps.push_back(std::make_unique<SimulatedPs>(world_, i));
    }
    for (int i = 0; i < world_.num_workers(); ++i) {
      world_.workers.push_back(std::make_unique<SimulatedWorker>(world_, i));
      threads_.push_back(world_.workers.back().get());
    }
    for (const auto& worker : world_.workers) worker->connect();
    for (const auto& ps : world_.ps) ps->connect();
    for (const auto& worker : world_.workers) {
      world_.time.after(delay(worker->index()), [it = worker.get()] { it->start(); });
    }
  }
  void make_members() {
    for (int i = 0; i < world_.num_workers(); ++i) {
      members_.push_back(std::make_unique<SimulatedMember>(world_, i, members_));
      threads_.push_back(members_.back().get());
    }
    for (const auto& member : members_) member->connect();
    for (const auto& member : members_) member->start();
  }

  template <typename Condition>
  void run_until(const Condition& holds) {
    std::size_t first = 0;
    while (first < threads_.size()) {
      if (holds(threads_[first])) {
        ++first;
      } else if (!world_.time.run_one() || world_.time.seconds() > kLongest) {
        throw Error(ErrorCode::kInternal, "[simulation] the steps are not made");
      }
    }
  }

  Used used() const {
    Used now{.at = world_.time.now(),
             .sent = world_.transport.network().sent(),
             .received = world_.transport.network().received()};
    for (const auto& machine : world_.transport.machines()) {
      now.cores.push_back(machine->core_seconds());
      now.memory.push_back(machine->bytes());
    }
    for (const auto& ps : world_.ps) now.applying.push_back(ps->applying());
    return now;
  }

  SimulatedSpeed speed(const Used& before, const Used& after) const {
    SimulatedSpeed speed{.events = world_.time.events()};
    double all = 0;
    for (const StepThread* thread : threads_) {
      const double seconds = seconds_of(thread->counted_to() - thread->counted_from());
      speed.workers.push_back(double(world_.job.steps) / seconds);
      speed.steps_per_s += speed.workers.back();
      all += seconds;
      const StepThread::Spent& spent = thread->spent();
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
    speed.use.cores = rates(before.cores, after.cores);
    speed.use.memory = rates(before.memory, after.memory);
    speed.use.applying = rates(before.applying, after.applying);
    for (std::size_t i = 0; i < speed.use.cores.size(); ++i) {
      const SimulatedMachine& machine = world_.job.cluster.machines[i];
      speed.use.cores[i] /= machine.cores;
      if (machine.bytes_per_s > 0) speed.use.memory[i] /= machine.bytes_per_s;
    }
    return speed;
  }

  SimulatedWorld world_;
  std::vector<std::unique_ptr<StepThread>> owned_;
  std::vector<std::unique_ptr<SimulatedMember>> members_;
  std::vector<StepThread*> threads_;
};

}  // namespace

SimulatedWorld::SimulatedWorld(const SimulatedJob& the_job)
    : job(the_job),
      aggregation(aggregation_of(the_job)),
      pieces(place_variables(the_job.step->specs, std::max(1, int(the_job.cluster.ps.size())))),
      time(the_job.seed),
      transport(time, job.cluster, job.costs) {}

SimulatedWorld::~SimulatedWorld() = default;

std::size_t SimulatedWorld::travelling(std::size_t bytes, bool shared) const {
  return job.way.bfloat16 && !shared ? bytes / 2 : bytes;
}

double SimulatedWorld::part_of(const Piece& piece) const {
  return double(piece.rows) / double(row_count(spec(piece.variable).shape));
}

std::int64_t SimulatedWorld::rows_named(const Piece& piece) const {
  const double rows = double(use(piece.variable).most_rows) * part_of(piece);
  return std::min(piece.rows, std::max<std::int64_t>(1, std::llround(rows)));
}

std::span<const std::string_view> simulated_strategies() { return kSimulated; }

SimulatedSpeed simulate(const SimulatedJob& job) {
  check_strategy(job);
  return Simulation(job).run();
}

}  // namespace paceline
