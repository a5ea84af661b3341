#include "predict/trial_steps.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "base/machine_memory.h"
#include "base/philox.h"
#include "base/real_clock.h"
#include "exec/executor.h"
#include "params/local/local_store.h"
#include "predict/step_cost.h"
#include "trace/pressure_counters.h"
#include "train/initial_values.h"
#include "train/input_normals.h"
#include "train/learning_rates.h"

namespace paceline {
namespace {

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
    check_fits_machine("a step of it needs", step_work(*plan_, specs).memory());
    store_ = make_local_store({specs.begin(), specs.end()}, &device_->threads(), &account_);
    store_->write(values_of(specs), 0);
    locals_ = std::make_unique<LocalMemory>(graph_, *device_);
    executor_ = std::make_unique<Executor>(*plan_, store_->bind(plan_->binding, plan_->clip_norm),
                                           *locals_, *device_, account_);
    fill_inputs();
  }

  TrialPace make(double seconds) {
    // The first step has memory made, and counts where it is the only one.
    TrialPace first = timed([](double, int made) { return made == 0; });
    const double left = seconds - first_took_;
    if (left < first_took_) return first;
    return timed([&](double took, int made) { return took + took / std::max(1, made) <= left; });
  }

 private:
  // Makes steps while `goes_on` says so of the seconds that they took, and of their number.
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
                     .others_share = queued_share(before, read_pressure_counters()).value_or(0)},
            .steps = made};
  }

  // To draw more values than these would take longer than the steps, whose time is hardly theirs.
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

}  // namespace

TrialPace time_steps(const PlanRequest& request, std::span<const VariableSpec> specs,
                     const DeviceOptions& device, double seconds) {
  return TrialSteps(request, specs, device).make(seconds);
}

}  // namespace paceline
