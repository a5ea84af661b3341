#include "predict/shape_predictor.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <climits>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/cores.h"
#include "base/failure_text.h"
#include "base/machine_memory.h"
#include "base/philox.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "base/real_clock.h"
#include "exec/executor.h"
#include "exec/parameter_store.h"
#include "exec/plan.h"
#include "kernels/device.h"
#include "kernels/device_kind.h"
#include "launch/lab/lab_options.h"
#include "net/link_kind.h"
#include "paceline/error.h"
#include "params/hybrid/hybrid_strategy.h"
#include "params/local/local_store.h"
#include "params/strategy/strategies.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "predict/memory_passes.h"
#include "predict/pace_cache.h"
#include "predict/prediction_text.h"
#include "predict/simulation/step_of_plan.h"
#include "predict/step_cost.h"
#include "run/network_rate.h"
#include "trace/pressure_counters.h"
#include "train/dimensions.h"
#include "train/initial_values.h"
#include "train/input_normals.h"
#include "train/learning_rates.h"
#include "train/precision.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

// A few real steps of a model on this machine, timed for a prediction.

/// The kernels' time in some steps, and the number of these steps.
struct TrialPace {
  Pace pace;
  int steps = 0;
};

/// Makes steps in this process on all threads of the device, in several copies at once, as workers
/// of one machine do: they share its memory and its caches. Each copy makes at least one step, and
/// no step that would end after `seconds`; keeps no result. Inputs of float32 are standard normal
/// numbers, row ids are drawn from all rows, and all other inputs are 0. Throws kInvalidArgument if
/// the steps need more memory than this machine has, and passes on errors of ops that refuse such
/// inputs.
TrialPace time_steps(const PlanRequest& request, std::span<const VariableSpec> specs,
                     const DeviceOptions& device, int copies, double seconds);

constexpr std::uint64_t kTrialSeed = 1;

double trial_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

double queued_so_far() { return queued_seconds(calling_thread()).value_or(0); }

class TrialSteps {
 public:
  TrialSteps(const PlanRequest& request, std::span<const VariableSpec> specs,
             const DeviceOptions& options)
      : graph_(*request.graph),
        device_(make_device(options, clock_)),
        plan_(make_plan(request, specs, *device_)),
        rates_(specs, request.training) {
    store_ = make_local_store({specs.begin(), specs.end()}, &device_->threads(), &account_);
    store_->write(values_of(specs), 0);
    locals_ = std::make_unique<LocalMemory>(graph_, *device_);
    executor_ = std::make_unique<Executor>(*plan_, store_->bind(plan_->binding, plan_->clip_norm),
                                           *locals_, *device_, account_);
    fill_inputs();
  }

  TrialPace make(double seconds) {
    // The first step allocates memory, so it counts only if no other step is made.
    TrialPace first = timed([](double, int made) { return made == 0; });
    const double left = seconds - first_took_;
    if (left < first_took_) return first;
    return timed([&](double took, int made) { return took + took / std::max(1, made) <= left; });
  }

 private:
  // Makes steps while `goes_on` returns true. Its arguments are the seconds that the steps have
  // taken so far, and their number.
  template <typename GoesOn>
  TrialPace timed(const GoesOn& goes_on) {
    const PressureCounters before = read_pressure_counters();
    const double queued = queued_so_far();
    const TimePoint begun = clock_.now();
    account_.reset();
    double took = 0;
    int made = 0;
    for (; goes_on(took, made); ++made) {
      executor_->run({.kind = StepKind::kTrain,
                      .learning_rates = rates_.at(steps_),
                      .examples = 1,
                      .identity = {.step = steps_}});
      ++steps_;
      took = trial_seconds(clock_.now() - begun);
    }
    account_.change_to(Activity::kOther);
    if (first_took_ == 0) first_took_ = took;
    // A thread that waits for a free core computes nothing meanwhile.
    const double ran = std::max(0.0, 1 - (queued_so_far() - queued) / took);
    const double computed = trial_seconds(account_.spent(Activity::kCompute));
    return {.pace = {.threads = device_->threads().threads(),
                     .seconds = computed * ran / made,
                     .others_share = queued_share(before, read_pressure_counters()).value_or(0),
                     .busy_cores = busy_cores_outside(*plan_)},
            .steps = made};
  }

  // Returns random initial values, or zeros if there are more than kMostDrawn elements: drawing
  // these would take longer than the steps, whose time hardly depends on the values.
  std::vector<VariableState> values_of(std::span<const VariableSpec> specs) const {
    constexpr double kMostDrawn = 30e6;
    double elements = 0;
    for (const VariableSpec& spec : specs) elements += double(spec.shape.elements());
    const Graph* const graph = &graph_;
    if (elements <= kMostDrawn) return initial_values({&graph, 1}, specs, kTrialSeed);
    std::vector<VariableState> zeros;
    for (std::size_t v = 0; v < specs.size(); ++v) {
      zeros.push_back({VariableId(v), Tensor(specs[v].dtype, specs[v].shape), {}});
    }
    return zeros;
  }

  void fill_inputs() {
    const InputNormals normals(kTrialSeed, 0);
    for (const auto& node : graph_.nodes()) {
      if (node->op().name != "input" || !plan_->inputs.contains(node->name())) continue;
      const Value input(node.get(), 0);
      const TensorView memory = executor_->view(node->name());
      if (input.dtype() == DType::kFloat32) {
        normals.fill({memory.as<float>(), std::size_t(memory.shape.elements())}, input, 0);
      } else {
        std::memset(memory.data, 0, input.type().bytes());
      }
    }
    for (const RowReads& reads : plan_->row_reads) {
      for (const auto& [name, slot] : plan_->inputs) {
        if (std::ranges::find(reads.ids, slot) != reads.ids.end()) draw_ids(name, reads.rows);
      }
    }
  }
  void draw_ids(const std::string& name, std::int64_t rows) {
    const TensorView memory = executor_->view(name);
    std::int32_t* const ids = memory.as<std::int32_t>();
    for (std::int64_t i = 0; i < memory.shape.elements(); ++i) {
      ids[i] = std::int32_t(random_key(std::uint64_t(i), name) % std::uint64_t(rows));
    }
  }

  const Graph& graph_;
  RealClock clock_;
  StepAccount account_{clock_};
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Plan> plan_;
  LearningRates rates_;
  std::unique_ptr<SavableStore> store_;
  std::unique_ptr<LocalMemory> locals_;
  std::unique_ptr<Executor> executor_;
  std::int64_t steps_ = 0;
  double first_took_ = 0;  // seconds
};

TrialPace time_steps(const PlanRequest& request, std::span<const VariableSpec> specs,
                     const DeviceOptions& device, int copies, double seconds) {
  check_fits_machine(copies == 1 ? "a step of it needs" : "its steps at once need",
                     copies * step_work(request, device).memory());
  // No thread ends before all have read the counters of this process, which count the threads that
  // there are.
  std::barrier made(copies);
  const auto make_copy = [&] {
    std::unique_ptr<TrialSteps> steps;
    std::exception_ptr error;
    try {
      steps = std::make_unique<TrialSteps>(request, specs, device);
    } catch (...) {
      error = std::current_exception();
    }
    made.arrive_and_wait();  // all begin together
    TrialPace pace;
    try {
      if (steps) pace = steps->make(seconds);
    } catch (...) {
      error = std::current_exception();
    }
    made.arrive_and_wait();
    if (error) std::rethrow_exception(error);
    return pace;
  };
  std::vector<std::future<TrialPace>> others;
  for (int copy = 1; copy < copies; ++copy) {
    others.push_back(std::async(std::launch::async, make_copy));
  }
  TrialPace all = make_copy();
  for (std::future<TrialPace>& each : others) {
    const TrialPace other = each.get();
    all.pace.seconds += other.pace.seconds;
    all.pace.others_share = std::max(all.pace.others_share, other.pace.others_share);
    all.steps += other.steps;
  }
  all.pace.seconds /= copies;
  all.pace.copies = copies;
  return all;
}

constexpr int kMostSimulated = 8;   // workers whose devices are simulated
constexpr int kMostWorkers = 1000;  // the largest number of workers that is tried
// The share of the roof that kernels are assumed to reach.
constexpr double kKernelsOfRoof = 0.85;
constexpr int kSpareHosts = 4;  // for parameter servers that other shapes add

std::string host_part(const std::string& address) { return address.substr(0, address.rfind(':')); }

bool is_cpu(const Cluster& cluster) { return device_kind(cluster.device.kind).meets_roof; }

// Fills in rates that a file does not give. If the file gives the memory's rate, the rates of
// threads and rules follow from it.
void take_rates(PredictedHost& host, const PredictedHost& like) {
  const auto take = [&](std::initializer_list<double PredictedHost::*> rates) {
    for (const auto rate : rates) {
      if (host.*rate == 0) host.*rate = like.*rate;
    }
  };
  if (host.bytes_per_s == 0) {
    take({&PredictedHost::bytes_per_s, &PredictedHost::thread_bytes_per_s,
          &PredictedHost::rule_bytes_per_s, &PredictedHost::thread_rule_bytes_per_s,
          &PredictedHost::cached_rule_bytes_per_s});
  }
  if (host.tcp_send_bytes_per_s == 0) {
    take({&PredictedHost::tcp_send_bytes_per_s, &PredictedHost::core_tcp_send_bytes_per_s});
  }
  if (host.tcp_receive_bytes_per_s == 0) {
    take({&PredictedHost::tcp_receive_bytes_per_s, &PredictedHost::core_tcp_receive_bytes_per_s});
  }
  take({&PredictedHost::cipher_bytes_per_s});
  take({&PredictedHost::tcp_message_s, &PredictedHost::tcp_trip_s, &PredictedHost::shm_message_s,
        &PredictedHost::shm_trip_s});
}

WireForm wire_of(const Cluster& cluster) {
  return {{cluster.links.wire, cluster.links.top_k}, cluster.links.error_feedback};
}

Roof roof_of(const PredictedHost& host, int threads) {
  return {.flops_per_s = host.flops_per_s * threads / std::max(1, int(host.cores)),
          .bytes_per_s = std::max(1.0, host.bytes_per_s),
          .cache_bytes = cache_bytes()};
}

double seconds_by_costs(const Plan& plan, const Roof& roof) {
  double seconds = 0;
  for (const Plan::KernelUse& use : plan.kernels) {
    const Cost cost = use.node->op().cost(*use.node);
    const double bytes = cost.bytes > double(roof.cache_bytes) ? cost.bytes : 0;
    seconds += std::max(cost.flops / roof.flops_per_s, bytes / roof.bytes_per_s);
  }
  return seconds / kKernelsOfRoof;
}

// Returns how many of the devices, each with so many threads, can have cores of their own at once.
int devices_at_once(int cores, int threads, int devices) {
  return std::clamp(devices, 1, std::max(1, cores / std::max(1, threads)));
}

bool is_of_same_threads(const std::optional<Pace>& one, const Pace& other) {
  return one && one->threads == other.threads && one->copies == other.copies;
}

const DeviceKind& kind_of_device(const Cluster& cluster) {
  return device_kind(cluster.device.kind);
}

bool launches(const Cluster& cluster) { return cluster.process == Cluster::Process::kLauncher; }

}  // namespace

std::string why_not_predicted(const Cluster& cluster, const PredictionOptions& options) {
  const DeviceKind& kind = kind_of_device(cluster);
  if (kind.is_predicted()) return "";
  if (!kind.has_own_roof || (options.roof.empty() && options.hosts.empty())) {
    return fmt::format(
        "--device {} is not predicted: how long its kernels take is not known; --device sim "
        "--sim-step-ms MS predicts for a device whose step takes MS milliseconds",
        kind.name);
  }
  if (!options.roof.empty() && read_roof_file(options.roof).device.is_known()) return "";
  const std::string remedy = fmt::format(
      "paceline roof --device {} --out FILE, on a machine that has it, writes it", kind.name);
  if (options.hosts.empty()) {
    return fmt::format(
        "--roof {}: the section [host.device] is missing, which --device {} needs: {}",
        options.roof, kind.name, remedy);
  }
  const std::vector<PredictedHost> hosts = read_hosts(options.hosts).hosts;
  const auto unknown = std::ranges::find_if(
      hosts, [](const PredictedHost& host) { return host.devices > 0 && !host.device.is_known(); });
  if (unknown == hosts.end()) return "";
  return fmt::format("--hosts {}: {} has no section [host.device], which --device {} needs: {}",
                     options.hosts, unknown->name, kind.name, remedy);
}

ShapePredictor::ShapePredictor(const PredictedStep& step, const Cluster& cluster,
                               const PredictionOptions& options,
                               const std::optional<PredictedHost>& here)
    : step_(step), cluster_(cluster), options_(options) {
  if (here) {
    here_ = *here;
  } else if (!options.roof.empty()) {
    here_ = read_roof_file(options.roof);
  } else {
    const SeenHost seen = options.asked ? host_of_moment() : this_host();
    here_ = seen.host;
    if (!seen.discarded.empty()) print_text(stderr, seen.discarded + "\n");
  }
  make_plans();
  take_hosts();
  const double examples =
      step_.examples > 0 ? step_.examples : double(first_dimension_of_inputs(*step_.request.graph));
  if (is_cpu(cluster_)) learn_kernels();
  if (kind_of_device(cluster_).has_own_roof) job_.kernels = KernelsFrom::kCosts;
  job_.straggler = options.straggler;
  job_.straggler_times = options.straggler_times;
  job_.share_memory = link_kind(cluster.links.kind).shares_memory;
  job_.tls = cluster.links.security.tls;
  job_.step = [this, examples](const StepOf& of) {
    // With several towers, updates are not streamed, since the store gets the mean of the towers'
    // gradients.
    const Plan& plan = of.own_rules && of.towers == 1 ? *own_ : *shared_;
    return simulated_step(plan, specs_, pace(plan, of), examples * of.towers);
  };
}

// If the job runs on cores, makes the plan for the cores' device, since its kernels decide how
// images are laid out. For other devices, makes it for the naive device.
void ShapePredictor::make_plans() {
  specs_ = variable_specs({&step_.request.graph, 1}, step_.request.training);
  if (step_.plan != nullptr) {
    shared_ = own_ = step_.plan;
    return;
  }
  device_ = make_device(is_cpu(cluster_) ? worker_device(cluster_) : DeviceOptions{.kind = "naive"},
                        clock_);
  PlanRequest request = step_.request;
  request.rewrite = rewrite_of(cluster_);
  shared_ = make_plan(request, specs_, *device_);
  request.stream_updates = is_cpu(cluster_);
  own_ = make_plan(request, specs_, *device_);
}

std::vector<std::string> ShapePredictor::task_hosts(
    const std::vector<std::string>& addresses) const {
  std::vector<std::string> hosts;
  hosts.reserve(addresses.size());
  for (const std::string& address : addresses) hosts.push_back(host_part(address));
  return hosts;
}

void ShapePredictor::take_hosts() {
  is_here_ = options_.hosts.empty();
  if (is_cpu(cluster_)) here_.devices = std::max(1, int(here_.cores));
  if (kind_of_device(cluster_).is_simulated) here_.devices = kMostSimulated;
  if (!options_.hosts.empty()) return take_hosts_of_file();
  const std::vector<std::string> names = place_tasks();
  if (names.size() > 1) return take_hosts_of_cluster(names);
  here_.name = "this machine";
  here_.devices = std::max(here_.devices, launches(cluster_) ? cluster_.launch.workers
                                                             : int(cluster_.spec.workers.size()));
  job_.hosts = {here_};
  own_hosts_ = 1;
  ps_hosts_.clear();
  worker_hosts_.clear();
}

void ShapePredictor::take_hosts_of_file() {
  DescribedHosts described = read_hosts(options_.hosts);
  job_.hosts = std::move(described.hosts);
  for (const HostPair& pair : described.pairs) {
    if (pair.missing.empty()) {
      job_.pairs.push_back(pair.link);
    } else {
      unknown_pairs_ += fmt::format("Not measured from {} to {}, predicted by their links: {}\n",
                                    job_.hosts[std::size_t(pair.link.from)].name,
                                    job_.hosts[std::size_t(pair.link.to)].name, pair.missing);
    }
  }
  for (PredictedHost& host : job_.hosts) {
    if (host.flops_per_s == 0) {
      host.flops_per_s = here_.flops_per_s / here_.cores * host.cores;
      host.others_share = here_.others_share;
    }
    take_rates(host, here_);
    if (!host.device.is_known()) host.device = here_.device;
  }
  own_hosts_ = int(job_.hosts.size());
  const auto has_device = [](const PredictedHost& host) { return host.devices > 0; };
  if (std::ranges::none_of(job_.hosts, has_device)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--hosts {}: no host has a device for a worker", options_.hosts));
  }
  std::array<char, HOST_NAME_MAX + 1> own_name{};
  is_here_ =
      gethostname(own_name.data(), HOST_NAME_MAX) == 0 && worker_host().name == own_name.data();
}

// The options say which tasks share a host; if they do not, the tasks' addresses do. Returns the
// hosts' names.
std::vector<std::string> ShapePredictor::place_tasks() {
  std::vector<std::string> names;
  names.reserve(std::size_t(options_.open_hosts));
  for (int i = 0; i < options_.open_hosts; ++i) names.push_back(fmt::format("host {}", i));
  if (!names.empty()) return names;
  if (!options_.ps_hosts.empty() || !options_.worker_hosts.empty()) {
    ps_hosts_ = options_.ps_hosts;
    worker_hosts_ = options_.worker_hosts;
    for (const auto* list : {&ps_hosts_, &worker_hosts_}) {
      for (const int at : *list) {
        while (int(names.size()) <= at) names.push_back(fmt::format("host {}", names.size()));
      }
    }
    return names;
  }
  if (launches(cluster_)) return names;
  const auto place = [&](const std::vector<std::string>& addresses, std::vector<int>& hosts) {
    for (const std::string& name : task_hosts(addresses)) {
      const auto found = std::ranges::find(names, name);
      hosts.push_back(int(found - names.begin()));
      if (found == names.end()) names.push_back(name);
    }
  };
  place(cluster_.spec.ps, ps_hosts_);
  place(cluster_.spec.workers, worker_hosts_);
  return names;
}

// All emulated hosts are this machine.
void ShapePredictor::take_hosts_of_cluster(const std::vector<std::string>& names) {
  const bool emulated = options_.link_gbps > 0;
  is_here_ = emulated;
  PredictedHost host = here_;
  // If the number of tasks is open, each host has room for one worker. Otherwise the options say
  // where each task runs, so a host has room for any number.
  host.devices = options_.open_hosts > 0 ? 1 : 1 << 20;
  host.latency_s = options_.link_delay_ms * 1e-3 / 2 + 15e-6;
  host.link_bytes_per_s = (emulated ? options_.link_gbps : network_gbps()) * kPayloadOfGigabit;
  for (std::size_t i = 0; i < names.size(); ++i) {
    host.name = names[i];
    host.machine = emulated ? 0 : int(i);
    job_.hosts.push_back(host);
  }
  own_hosts_ = int(job_.hosts.size());
  if (!emulated || options_.open_hosts > 0 || !each_task_has_a_host()) return;
  for (int i = 0; i < kSpareHosts; ++i) {
    host.name = fmt::format("host {}", own_hosts_ + i);
    job_.hosts.push_back(host);
  }
}

bool ShapePredictor::each_task_has_a_host() const {
  std::set<int> used(ps_hosts_.begin(), ps_hosts_.end());
  used.insert(worker_hosts_.begin(), worker_hosts_.end());
  return used.size() == ps_hosts_.size() + worker_hosts_.size();
}

void ShapePredictor::place(JobShape& shape) const {
  if (options_.open_hosts > 0) {
    LabOptions lab{.hosts = options_.open_hosts};
    spread_tasks(lab, shape.ps, shape.workers);
    shape.ps_hosts = lab.ps;
    shape.worker_hosts = lab.workers;
    return;
  }
  if (worker_hosts_.size() == std::size_t(shape.workers)) shape.worker_hosts = worker_hosts_;
  shape.ps_hosts = ps_hosts_;
  shape.ps_hosts.resize(std::min(shape.ps_hosts.size(), std::size_t(shape.ps)));
  for (int spare = own_hosts_; spare < int(job_.hosts.size()); ++spare) {
    if (int(shape.ps_hosts.size()) < shape.ps) shape.ps_hosts.push_back(spare);
  }
}

// Assumes that all workers' kernels are as fast as on the first host that has a device.
const PredictedHost& ShapePredictor::worker_host() const {
  const auto found =
      std::ranges::find_if(job_.hosts, [](const PredictedHost& host) { return host.devices > 0; });
  return found == job_.hosts.end() ? job_.hosts.front() : *found;
}

bool ShapePredictor::are_threads_told() const {
  const int cores = std::max(1, int(worker_host().cores));
  return cluster_.threads > 0 &&
         cluster_.threads != std::max(1, cores / std::max(1, workers_on_own_machine()));
}

void ShapePredictor::learn_kernels() {
  const std::string key = pace_key(*shared_, cluster_.train.precision);
  paces_ = this_pace_cache().find(key);
  std::vector<Pace> missing;
  for (const Pace& pace : paces_to_time()) {
    const std::optional<Pace> known = nearest_pace(paces_, pace.threads, pace.copies);
    if (!is_of_same_threads(known, pace) || is_beside_others(known->others_share)) {
      missing.push_back(pace);
    }
  }
  // The other code's own steps were the trial, and what is timed here only passes that time.
  const bool trial = options_.trial || busy_cores_outside(*shared_) > 0;
  if (trial && !missing.empty()) time_kernels(key, missing);
  const std::optional<Pace> known = nearest_pace(paces_, threads(1));
  job_.kernels = !known                                  ? KernelsFrom::kCosts
                 : is_beside_others(known->others_share) ? KernelsFrom::kBesideOthers
                                                         : KernelsFrom::kSteps;
}

// Returns the numbers of threads, and of copies at once, with which to time steps: those of a
// worker that is alone, those of its towers, and one thread for each core. Several workers on a
// machine have numbers in between. If the workers' host has fewer cores than this one, a step on
// one thread is also timed alone. Steps of other code only pass their time here.
std::vector<Pace> ShapePredictor::paces_to_time() const {
  const int cores = usable_cores(), all = are_threads_told() ? cluster_.threads : cores;
  const int of_tower = std::max(1, all / cluster_.towers);
  std::set<std::pair<int, int>, std::greater<>> wanted;
  wanted.emplace(all, 1);
  wanted.emplace(of_tower, devices_at_once(cores, of_tower, cluster_.towers));
  wanted.emplace(1, devices_at_once(cores, 1, cores));
  if (int(worker_host().cores) < cores) wanted.emplace(1, 1);
  if (is_computed_outside(*shared_)) wanted = {{all, 1}};
  std::vector<Pace> paces;
  for (const auto& [threads, copies] : wanted) {
    paces.push_back({.threads = threads, .copies = copies});
  }
  return paces;
}

// Times the kernels with these numbers of threads and copies, the largest first. Once some steps
// are timed, leaves out numbers with which a step would take too long.
void ShapePredictor::time_kernels(const std::string& key, std::span<const Pace> missing) {
  constexpr double kSeconds = 2;
  PlanRequest request = step_.request;
  request.rewrite = rewrite_of(cluster_);
  request.stream_updates = true;
  DeviceOptions device = worker_device(cluster_);
  try {
    for (const Pace& wanted : missing) {
      const std::optional<Pace> known = nearest_pace(paces_, wanted.threads, wanted.copies);
      const double each = known ? known->seconds * known->threads / wanted.threads : 0;
      if (2 * each > kSeconds / double(missing.size()) && timed_ > 0) continue;
      device.threads = wanted.threads;
      const TrialPace made =
          time_steps(request, specs_, device, wanted.copies, kSeconds / double(missing.size()));
      timed_ += made.steps;
      if (is_of_same_threads(known, wanted) && !is_beside_others(made.pace.others_share)) {
        print_text(stderr, fmt::format("Discards the time of its steps on {}, measured {}: they "
                                       "were timed anew\n",
                                       counted(wanted.threads, "thread"),
                                       beside_others(known->others_share)));
      }
      std::erase_if(paces_, [&](const Pace& pace) { return is_of_same_threads(pace, wanted); });
      paces_.push_back(made.pace);
      this_pace_cache().keep(key, made.pace);
    }
  } catch (const std::exception& error) {
    untimed_ = failure_text(error);
  }
}

std::string ShapePredictor::why_not_measured() const {
  if (job_.kernels != KernelsFrom::kCosts) return "";
  if (kind_of_device(cluster_).has_own_roof) {
    return fmt::format(
        "the times of {} are predicted from its roof file and were not verified by "
        "a run",
        worker_host().device.name);
  }
  if (!untimed_.empty()) return untimed_;
  return "no step of it was timed here";
}

std::string ShapePredictor::kernels_in_words(const std::optional<Pace>& pace) const {
  if (kind_of_device(cluster_).has_own_roof) {
    const auto kernels = std::int64_t(own_->kernels.size());
    return fmt::format("with copies, and {} ms for launching {}; {}",
                       rounded(1e3 * worker_host().device.launch_s * double(kernels), 3),
                       counted(kernels, "kernel"), why_not_measured());
  }
  if (!is_cpu(cluster_)) return "as --sim-step-ms and --sim-gflops say";
  if (!pace) return "from its FLOPs and bytes; nothing was measured: " + why_not_measured();
  const std::string when = timed_ > 0 ? "measured in " + counted(timed_, "step") + " just now"
                                      : "measured in an earlier run";
  return is_beside_others(pace->others_share) ? when + ", " + beside_others(pace->others_share)
                                              : when;
}

// Returns the kernels' time on these threads. Of the measured time, the part that FLOPs and bytes
// explain is scaled to these threads and to the worker's host. The rest, such as the start of each
// kernel, stays.
double ShapePredictor::kernel_seconds(const Plan& plan, const Roof& roof,
                                      const std::optional<Pace>& known) const {
  const double there = seconds_by_costs(plan, roof);
  if (!known) return there;
  const double here = seconds_by_costs(plan, roof_of(here_, known->threads));
  if (here <= 0) return known->seconds;
  const double explained = std::min(known->seconds, here);
  return known->seconds - explained + explained * there / here;
}

// Counts the workers of the cluster's own strategy on the machine that has the most of them.
int ShapePredictor::workers_on_own_machine() const {
  const JobShape own = own_shape();
  std::map<int, int> count;
  int most = own.worker_hosts.empty() ? own.workers : 1;
  for (const int host : own.worker_hosts) {
    most = std::max(most, ++count[job_.hosts[std::size_t(host)].machine]);
  }
  return most;
}

// If the number of threads is a worker's share of the cores, it may come from the launcher and not
// from the user. Then each worker gets more threads if fewer workers share the machine.
int ShapePredictor::threads(int workers_on_machine) const {
  if (are_threads_told()) return cluster_.threads;
  return std::max(1, int(worker_host().cores) / std::max(1, workers_on_machine));
}

DevicePace ShapePredictor::pace(const Plan& plan, const StepOf& of) const {
  const int threads = this->threads(of.workers_on_machine);
  DevicePace pace{.towers = of.towers, .rule_threads = threads};
  if (kind_of_device(cluster_).has_own_roof) {
    const DeviceRoof& device = worker_host().device;
    pace.roof = {.flops_per_s = device.flops_per_s, .bytes_per_s = device.bytes_per_s};
    pace.launch_seconds = device.launch_s;
    pace.upload_bytes_per_s = device.upload_bytes_per_s;
    pace.download_bytes_per_s = device.download_bytes_per_s;
    return pace;
  }
  if (!is_cpu(cluster_)) {
    pace.upload_bytes_per_s = pace.download_bytes_per_s = cluster_.device.sim_copy_gbps * 1e9;
    pace.step_seconds = cluster_.device.sim_step_ms * 1e-3;
    double flops = 0;
    for (const Plan::KernelUse& use : plan.kernels) flops += use.node->op().cost(*use.node).flops;
    if (pace.step_seconds == 0 && cluster_.device.sim_gflops > 0) {
      pace.step_seconds = flops / (cluster_.device.sim_gflops * 1e9);
    }
    // If this process is the straggler, its device is already slow, but the prediction needs the
    // usual time of a step.
    const bool slow = cluster_.process == Cluster::Process::kTask &&
                      cluster_.task == TaskId{TaskId::Role::kWorker, options_.straggler};
    if (slow) pace.step_seconds /= options_.straggler_times;
    return pace;
  }
  pace.threads = std::max(1, threads / of.towers);
  pace.roof = roof_of(worker_host(), pace.threads);
  if (!beside_.empty() && of.workers_on_machine > 1) {
    take_beside(of.workers_on_machine, plan, pace);
    return pace;
  }
  const int copies =
      devices_at_once(int(worker_host().cores), pace.threads, of.workers_on_machine * of.towers);
  const std::optional<Pace> known = nearest_pace(paces_, pace.threads, copies);
  pace.step_seconds = kernel_seconds(plan, pace.roof, known);
  if (known && known->busy_cores > 0) pace.busy = std::min(1.0, known->busy_cores / pace.threads);
  return pace;
}

// Takes the pace that copies had at once. Their time has all that they do to each other. So the
// simulated kernels of as many workers as there were copies fit the cores, and wait for each other
// no more. Only further workers do, and whatever else the tasks compute.
void ShapePredictor::take_beside(int workers, const Plan& plan, DevicePace& pace) const {
  const int alone = threads(1);
  pace.step_seconds = kernel_seconds(plan, roof_of(here_, alone), nearest_pace(paces_, alone)) *
                      beside_.slowdown(workers);
  const double share = here_.cores / std::min(workers, beside_.most());
  pace.threads = std::clamp(int(share), 1, pace.threads);
  const double measured = beside_.busy_cores(workers);
  const double cores = measured > 0 ? std::min(measured, share) : share;
  pace.busy = std::min(1.0, cores / pace.threads);
}

double ShapePredictor::seconds_alone() const { return seconds_outside(*shared_); }

std::vector<int> ShapePredictor::copies_to_run(std::span<const JobShape> shapes) const {
  if (!is_here_ || !is_cpu(cluster_) || seconds_alone() <= 0) return {};
  int most = 1;
  for (const JobShape& shape : shapes) most = std::max(most, workers_on_a_machine(job_, shape));
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  constexpr double kLeft = 0.8;  // the part of the memory that processes may have
  const double each = 1024 * std::max(1.0, double(own.ru_maxrss));
  const double fit = kLeft * double(memory_of_machine()) / each - 1;  // beside this process
  most = std::min({most, int(here_.cores), int(std::min(fit, double(kMostWorkers)))});
  if (most < 2) return {};
  return most == 2 ? std::vector{2} : std::vector{2, most};
}

// Adds the addresses that tasks will have once the launcher has started them on emulated hosts,
// since --strategy auto chooses by addresses.
Cluster ShapePredictor::with_addresses() const {
  Cluster cluster = cluster_;
  if (!launches(cluster_)) return cluster;
  for (const int host : ps_hosts_) cluster.spec.ps.push_back(fmt::format("{}:0", host));
  for (const int host : worker_hosts_) cluster.spec.workers.push_back(fmt::format("{}:0", host));
  return cluster;
}

JobShape ShapePredictor::own_shape() const {
  JobShape shape;
  shape.ps = launches(cluster_) && !cluster_.existing_servers ? cluster_.launch.ps
                                                              : int(cluster_.spec.ps.size());
  shape.workers = launches(cluster_) ? cluster_.launch.workers : cluster_.workers();
  shape.strategy = settled(strategy_kind(with_addresses()), cluster_.strategy);
  shape.wire = wire_of(cluster_);
  shape.accumulate = cluster_.train.accumulate;
  shape.towers = cluster_.towers;
  place(shape);
  return shape;
}

ShapesAsked ShapePredictor::asked() const {
  ShapesAsked asked;
  asked.accumulate = cluster_.train.accumulate;
  asked.strategy = cluster_.strategy;
  asked.strategy.name.clear();
  asked.links = own_hosts_ > 1;
  asked.sparse = why_not_hybrid(specs_).empty() && why_not_hybrid(cluster_, 2).empty();
  if (const WireForm wire = wire_of(cluster_); !wire.exact()) asked.wire = wire;
  if (cluster_.process != Cluster::Process::kAlone) {
    const JobShape own = own_shape();
    if (!launches(cluster_) || !options_.any_ps) asked.ps = own.ps;
    if (!options_.any_workers) asked.workers = own.workers;
    // The default strategy counts as not chosen, since the user may not have named it.
    const StrategyKind& kind = strategy_named(own.strategy.name, kind_of(cluster_));
    const bool named = cluster_.strategy.name != kAutomatic;
    if (named && &kind != &default_strategy(kind.cluster)) {
      asked.strategy.name = own.strategy.name;
    }
  }
  int devices = 0;
  for (const PredictedHost& host : job_.hosts) {
    devices = std::min(kMostWorkers, devices + std::min(kMostWorkers, host.devices));
  }
  asked.towers = cluster_.towers;
  asked.most_workers = std::max(1, devices / cluster_.towers);
  return asked;
}

std::string ShapePredictor::facts() const {
  const double seconds = job_.step({.own_rules = true}).seconds();
  return hosts_text(std::span(job_.hosts).first(std::size_t(own_hosts_))) + pairs_text(job_.pairs) +
         unknown_pairs_ +
         fmt::format("The kernels of a step take {} ms ({}).\n", rounded(1e3 * seconds, 3),
                     kernels_in_words(nearest_pace(paces_, threads(1))));
}

}  // namespace paceline
