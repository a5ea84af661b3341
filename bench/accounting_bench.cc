// Checks that the report finds time where it was spent. Slows the input, a kernel, the link and a
// rule of a small training in turn, on the real clock, and prints the activities to which the
// report gives the added time. Fails if less than 90% of the added time is in the right activities.
// Tests do the same with a manual clock (train/train_loop_test.cc).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "net/inproc/inproc_link.h"
#include "net/wrapped/slow_link.h"
#include "paceline/op.h"
#include "paceline/ops.h"
#include "params/local/local_store.h"
#include "params/ps/serve.h"
#include "params/worker/ps_store.h"
#include "train/initial_values.h"
#include "train/train_loop.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;

constexpr int kWarmUp = 20, kSteps = 200;
constexpr Duration kAdded = milliseconds(2);

/// How much longer each part of a step takes; `link` delays each frame on its way to the worker.
struct Delays {
  Duration input{0}, kernel{0}, link{0}, rule{0};
};

/// The steps of another store, with a rule that takes longer.
class SlowRule : public StoreSteps {
 public:
  SlowRule(std::unique_ptr<StoreSteps> steps, Clock& clock, StepAccount& account, Duration added)
      : steps_(std::move(steps)), clock_(clock), account_(account), added_(added) {}

  void count_waits(StepAccount& account) override { steps_->count_waits(account); }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& s) override {
    steps_->begin_step(kind, rows, s);
  }
  AsyncView need(VariableId variable) override { return steps_->need(variable); }
  AsyncView place(VariableId variable) override { return steps_->place(variable); }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    steps_->ready(variable, contribution, event);
    AccountScope apply(account_, Activity::kApply);
    if (added_ > Duration(0)) clock_.sleep_until(clock_.now() + added_);
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    return steps_->end_step(clip_scale, next_rows);
  }

 private:
  std::unique_ptr<StoreSteps> steps_;
  Clock& clock_;
  StepAccount& account_;
  Duration added_;
};

/// One ps and one worker over a slow link, as threads of this process.
class SlowServer {
 public:
  SlowServer(Clock& clock, Duration added, const std::vector<VariableSpec>& specs) {
    const ClusterSpec spec = ClusterSpec::parse("ps=ps:1;worker=worker:1");
    PsOptions ps;
    ps.spec = spec;
    ps.task = {TaskId::Role::kPs, 0};
    ps.cluster_id = "accounting";
    ps.link_factory = [this](const LinkOptions& options) { return link(options); };
    thread_ = std::jthread([ps] { serve(ps); });
    PsStoreOptions worker;
    worker.spec = spec;
    worker.cluster_id = ps.cluster_id;
    worker.link_factory = [this, &clock, added](const LinkOptions& options) {
      return slow_link(link(options), clock, added);
    };
    store_ = PsStore::join(worker, specs);
  }
  ~SlowServer() { store_->goodbye(); }
  ParameterStore& store() { return *store_; }

 private:
  std::unique_ptr<Link> link(const LinkOptions& options) const {
    return make_inproc_link(options, hub_);
  }

  const std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>();
  std::jthread thread_;
  std::unique_ptr<PsStore> store_;
};

/// Milliseconds of a step by activity, and their sum.
using Times = std::map<std::string, double>;

class SlowTraining {
 public:
  SlowTraining(const Delays& delays, bool with_ps)
      : delays_(delays), ops_(with_slow_op()), graph_(ops_) {
    x_ = graph_.input("x", {64});
    const Value w = graph_.variable("w", {64}, Initializer::constant(1));
    const Value y = mul(graph_.apply("slow", {x_}), w);
    training_ = minimize(mean_squared_error(y, x_), Sgd{.learning_rate = 0.01f});
    const Graph* graphs[] = {&graph_};
    specs_ = variable_specs(graphs, &training_);
    make_store(with_ps);
    store_->write(initial_values(graphs, specs_, 1), 0);
    PlanRequest request;
    request.graph = &graph_;
    request.training = &training_;
    plan_ = make_plan(request, specs_, *device_);
  }

  Times run() {
    auto steps =
        std::make_unique<SlowRule>(store_->bind(plan_->binding, 0), clock_, account_, delays_.rule);
    LocalMemory locals(graph_, *device_);
    Executor executor(*plan_, std::move(steps), locals, *device_, account_);
    LearningRates rates(specs_, &training_);
    TrainLoop loop({.trainings = {{{&executor}, rates}},
                    .store = *store_,
                    .account = account_,
                    .meter = meter_,
                    .normals = normals_});
    for (int i = 0; i < kWarmUp + kSteps; ++i) {
      if (i == kWarmUp) meter_.start();
      loop.step([&](Feed& feed) {
        sleep(delays_.input);
        feed.normal(x_);
      });
      loop.end_step();
    }
    return times();
  }

 private:
  void sleep(Duration duration) {
    if (duration > Duration(0)) clock_.sleep_until(clock_.now() + duration);
  }

  OpRegistry with_slow_op() {
    OpRegistry ops = copy_of_builtin_ops();
    Op op;
    op.name = "slow";
    op.infer = [](const OpInputs& in) { return std::vector<ValueType>{in.types[0]}; };
    op.no_gradient = "it only takes time";
    op.cost = [](const Node&) { return Cost{}; };
    op.kernel = [this](const Node&, const KernelCall& call) {
      sleep(delays_.kernel);
      std::fill_n(call.outputs[0].as<float>(), call.outputs[0].shape.elements(), 2.0f);
    };
    register_op(ops, std::move(op));
    return ops;
  }

  void make_store(bool with_ps) {
    if (with_ps) {
      server_ = std::make_unique<SlowServer>(clock_, delays_.link, specs_);
      store_ = &server_->store();
    } else {
      local_ = make_local_store(specs_, nullptr, &account_);
      store_ = local_.get();
    }
  }

  Times times() const {
    const TaskReport report = meter_.report("worker:0");
    Times times{{"all", 1e3 / *report.steps_per_s}};
    for (const auto& [name, share] : report.share) times[name] = share * times["all"];
    return times;
  }

  const Delays delays_;
  RealClock clock_;
  StepAccount account_{clock_};
  StepMeter meter_{account_, 1, "examples"};
  std::shared_ptr<const InputNormals> normals_ = std::make_shared<InputNormals>(0, 0);
  OpRegistry ops_;
  Graph graph_;
  Value x_;
  Training training_;
  std::vector<VariableSpec> specs_;
  std::unique_ptr<Device> device_ = make_device({.kind = "cpu"}, clock_);
  std::unique_ptr<SlowServer> server_;
  std::unique_ptr<ParameterStore> local_;
  ParameterStore* store_ = nullptr;
  std::unique_ptr<Plan> plan_;
};

/// Measures the training with these delays, and prints a line. Returns true if 90% of the added
/// time is in the activities `expected`.
bool found(const char* what, const Delays& delays, const std::vector<std::string>& expected) {
  const bool with_ps = delays.link > Duration(0);
  const Times before = SlowTraining({}, with_ps).run();
  const Times after = SlowTraining(delays, with_ps).run();
  const double added = after.at("all") - before.at("all");
  double share = 0;
  fmt::print("{:7} {:8.2f}", what, added);
  for (int i = 0; i < kActivityCount; ++i) {
    const std::string name(name_of(Activity(i)));
    const double part = (after.at(name) - before.at(name)) / added;
    fmt::print(" {:7.1f}%", 100 * part);
    if (std::ranges::count(expected, name) > 0) share += part;
  }
  const bool good = share >= 0.9 && share <= 1.1;
  fmt::print("  {}\n", good ? "found" : "NOT FOUND");
  return good;
}

int run() {
  fmt::print("{:7} {:>8}", "slower", "ms/step");
  for (int i = 0; i < kActivityCount; ++i) fmt::print(" {:>8}", name_of(Activity(i)));
  fmt::print("\n");
  bool good = found("input", {.input = kAdded}, {"input"});
  good = found("kernel", {.kernel = kAdded}, {"compute"}) && good;
  good = found("link", {.link = kAdded}, {"pull", "push"}) && good;
  good = found("rule", {.rule = kAdded}, {"apply"}) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace paceline

int main() { return paceline::run(); }
