#include "params/testing/job_fixture.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "net/inproc/inproc_link.h"

namespace paceline {

using namespace std::chrono_literals;

void JobFixture::make_spec(int num_ps, int num_workers) {
  for (int i = 0; i < num_ps; ++i) spec_.ps.push_back("ps" + std::to_string(i) + ":1");
  for (int i = 0; i < num_workers; ++i) {
    spec_.workers.push_back("worker" + std::to_string(i) + ":1");
  }
}

void JobFixture::say(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    said_ += line + "\n";
  }
  changed_.notify_all();
}

std::string JobFixture::said() {
  const std::lock_guard lock(mutex_);
  return said_;
}

bool JobFixture::wait_said(const std::string& text) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, 60s, [&] { return said_.find(text) != std::string::npos; });
}

PsOptions JobFixture::ps_options(int ps) {
  PsOptions options;
  options.spec = spec_;
  options.task = {TaskId::Role::kPs, ps};
  options.cluster_id = "test";
  options.link_factory = link_factory();
  options.stop_fd = stop_fd_;
  options.reconnect_timeout = reconnect_timeout_;
  options.after_reads = after_reads_;
  options.say = options.warn = [this](const std::string& line) { say(line); };
  return options;
}

PsStoreOptions JobFixture::store_options(int worker) {
  PsStoreOptions options;
  options.spec = spec_;
  options.task = {TaskId::Role::kWorker, worker};
  options.cluster_id = "test";
  options.link_factory = link_factory();
  options.join_timeout = 60s;
  options.reconnect_timeout = reconnect_timeout_;
  options.say = [this](const std::string& line) { say(line); };
  return options;
}

std::future<PsSummary> JobFixture::start_ps(const PsOptions& options) {
  std::packaged_task<PsSummary()> task([options] { return serve(options); });
  std::future<PsSummary> future = task.get_future();
  threads_.emplace_back(std::move(task));
  return future;
}

void JobFixture::stop_all_ps() { eventfd_write(stop_fd_, 1); }

void JobFixture::start_all_ps() {
  for (std::size_t i = 0; i < spec_.ps.size(); ++i) {
    ps_tasks_.push_back(start_ps(ps_options(int(i))));
  }
}

std::vector<std::unique_ptr<PsStore>> JobFixture::join_all(
    const std::vector<VariableSpec>& variables) {
  std::vector<std::future<std::unique_ptr<PsStore>>> joining;
  joining.reserve(spec_.workers.size());
  for (std::size_t i = 0; i < spec_.workers.size(); ++i) {
    joining.push_back(std::async(std::launch::async, [this, i, &variables] {
      return PsStore::join(store_options(int(i)), variables);
    }));
  }
  std::vector<std::unique_ptr<PsStore>> stores;
  stores.reserve(joining.size());
  for (auto& store : joining) stores.push_back(store.get());
  return stores;
}

JobFixture::JobFixture() : hub_(std::make_shared<InprocHub>()), stop_fd_(eventfd(0, EFD_CLOEXEC)) {}

std::function<std::unique_ptr<Link>(const LinkOptions&)> JobFixture::link_factory() {
  return [hub = hub_](const LinkOptions& options) { return make_inproc_link(options, hub); };
}

JobFixture::~JobFixture() {
  stop_all_ps();
  for (std::thread& thread : threads_) thread.join();
  close(stop_fd_);
}

VariableState initial_state(const VariableSpec& spec, VariableId variable) {
  VariableState state{.variable = variable, .value = Tensor(spec.dtype, spec.shape), .slots = {}};
  const std::span<float> values = state.value.data<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(float(i) + 10.0f * float(variable));
  }
  return state;
}

std::vector<VariableState> initial_states(std::span<const VariableSpec> variables) {
  std::vector<VariableState> states;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    states.push_back(initial_state(variables[v], VariableId(v)));
  }
  return states;
}

namespace {

PlanBinding binding_of(std::span<const VariableSpec> variables, bool reread) {
  PlanBinding plan;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    plan.uses.push_back({.variable = VariableId(v),
                         .updated = variables[v].trained,
                         .most_rows = variables[v].sparse ? variables[v].shape[0] : 0,
                         .reread = reread});
  }
  return plan;
}

}  // namespace

StepDriver::StepDriver(ParameterStore& store, bool clipped, bool reread)
    : store_(store),
      clipped_(clipped),
      steps_(store.bind(binding_of(store.variables(), reread), clipped ? 1.0f : 0.0f)) {
  contributed_.resize(store.variables().size());
  for (const VariableSpec& variable : store.variables()) {
    learning_rates_.push_back(variable.rule.learning_rate());
  }
}

std::vector<std::int32_t> StepDriver::rows_of(VariableId variable, std::int64_t step) const {
  const std::int64_t rows = store_.variables()[std::size_t(variable)].shape[0];
  std::vector<std::int32_t> ids;
  for (std::int64_t row = step % 3; row < rows; row += 1 + step % 5) {
    ids.push_back(std::int32_t(row));
  }
  return ids;
}

std::vector<RowSet> StepDriver::row_sets(std::int64_t step) {
  rows_.assign(store_.variables().size(), {});
  std::vector<RowSet> sets;
  for (std::size_t v = 0; v < rows_.size(); ++v) {
    if (!store_.variables()[v].sparse) continue;
    rows_[v] = rows_of(VariableId(v), step);
    sets.push_back({.variable = VariableId(v), .ids = rows_[v]});
  }
  return sets;
}

void StepDriver::contribute(VariableId variable) {
  const VariableSpec& spec = store_.variables()[std::size_t(variable)];
  const TensorView value = steps_->need(variable).view;
  const std::int64_t elements = value.shape.elements();
  const std::int64_t row = spec.sparse ? elements / std::max<std::int64_t>(1, spec.shape[0]) : 0;
  float* const gradient = steps_->place(variable).view.as<float>();
  std::vector<std::int32_t>& ids = contributed_[std::size_t(variable)];
  if (spec.sparse) ids = rows_of(variable, step_);
  const std::int64_t count = spec.sparse ? std::int64_t(ids.size()) * row : elements;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = spec.sparse ? ids[std::size_t(i / row)] * row + i % row : i;
    gradient[i] = 0.3f * value.as<float>()[from] + 0.01f * float((step_ + from) % 7 - 3);
  }
  steps_->ready(variable, {.sparse = spec.sparse, .ids = ids}, {});
}

std::int64_t StepDriver::step() {
  const std::vector<RowSet> rows = rows_come_ ? std::vector<RowSet>{} : row_sets(step_);
  steps_->begin_step(StepKind::kTrain, rows,
                     {.learning_rates = learning_rates_, .examples = 1, .step = step_});
  for (std::size_t v = 0; v < store_.variables().size(); ++v) {
    if (store_.variables()[v].trained) contribute(VariableId(v));
  }
  rows_come_ = knows_next_rows;
  const std::vector<RowSet> next = rows_come_ ? row_sets(step_ + 1) : std::vector<RowSet>{};
  ++step_;
  return steps_->end_step(clipped_ ? 1.0f / float(1 + step_ % 3) : 1.0f, next).global_step();
}

void StepDriver::wait_applied() {
  for (std::size_t v = 0; v < store_.variables().size(); ++v) steps_->need(VariableId(v));
}

std::vector<std::vector<float>> everything(ParameterStore& store) {
  std::vector<VariableId> ids;
  for (std::size_t v = 0; v < store.variables().size(); ++v) ids.push_back(VariableId(v));
  std::vector<std::vector<float>> all;
  const auto add = [&]<typename T>(std::span<T> values) {
    all.emplace_back(values.begin(), values.end());
  };
  for (const VariableState& state : store.read(ids)) {
    add(state.value.data<float>());
    for (const Tensor& slot : state.slots) {
      if (slot.dtype() == DType::kInt64) {
        add(slot.data<std::int64_t>());
      } else {
        add(slot.data<float>());
      }
    }
  }
  return all;
}

namespace {

TEST(StepDriver, InitialValuesDifferBetweenElements) {
  const VariableState state = initial_state({.name = "w", .shape = {3}, .rule = Adam{}}, 1);
  EXPECT_NE(state.value.data<float>()[0], state.value.data<float>()[1]);
}

}  // namespace
}  // namespace paceline
