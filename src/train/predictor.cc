#include "paceline/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "base/copy_bytes.h"
#include "base/cores.h"
#include "base/row_count.h"
#include "checkpoint/checkpoint_reader.h"
#include "graph/open_graph.h"
#include "kernels/device.h"
#include "paceline/error.h"
#include "trace/step_account.h"
#include "train/device_context.h"
#include "train/feed.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

DeviceOptions device_of(const PredictorOptions& options) {
  if (options.threads < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[predictor] {} threads: at least one is needed", options.threads));
  }
  Cluster alone;
  alone.device = options.device;
  DeviceOptions device = worker_device(alone);
  device.threads = options.threads > 0 ? options.threads : usable_cores();
  return device;
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "[predictor] " + why);
}

// Returns the rows of a batch; 0 where the graph has open dimensions.
std::int64_t check_outputs(const Graph& graph, std::span<const Value> outputs) {
  if (outputs.empty()) refuse("no output is asked for");
  const bool open = bool(open_input(graph));
  for (const Value& output : outputs) {
    if (!output) refuse("an output is no value");
    if (&output.graph() != &graph)
      refuse(fmt::format("output '{}' is of another graph", output.name()));
    if (open) continue;
    if (output.shape().rank() == 0 || output.shape()[0] == 0) {
      refuse(fmt::format("output '{}' is {}: its dimension 0 must be the batch", output.name(),
                         output.type().str()));
    }
    if (output.shape()[0] != outputs[0].shape()[0]) {
      refuse(fmt::format("output '{}' is {}, and '{}' {}: their dimension 0 must be the same batch",
                         outputs[0].name(), outputs[0].type().str(), output.name(),
                         output.type().str()));
    }
  }
  return open ? 0 : outputs[0].shape()[0];
}

/// The rows that several batches are made of.
struct Rows {
  std::int64_t first = 0, count = 0;
};

std::size_t row_bytes_of(const TensorView& view) {
  return view.bytes() / std::size_t(view.shape[0]);
}

// Fills up with zeros.
void copy_in(const Tensor& tensor, const Rows& rows, const TensorView& memory) {
  const std::size_t bytes = row_bytes_of(memory), filled = std::size_t(rows.count) * bytes;
  auto* const to = static_cast<std::byte*>(memory.data);
  copy_bytes(to, static_cast<const std::byte*>(tensor.raw()) + std::size_t(rows.first) * bytes,
             filled);
  std::memset(to + filled, 0, memory.bytes() - filled);
}

void copy_out(const TensorView& memory, const Rows& rows, const Tensor& tensor) {
  const std::size_t bytes = row_bytes_of(memory);
  copy_bytes(static_cast<std::byte*>(tensor.raw()) + std::size_t(rows.first) * bytes, memory.data,
             std::size_t(rows.count) * bytes);
}

using Inputs = std::vector<std::pair<Value, Tensor>>;

// Takes the sizes that a tensor says, each of which must be at least 1 and the same everywhere.
void add_sizes(Value input, const Tensor& tensor, OpenSizes& sizes) {
  const std::string what = fmt::format("input '{}' is {}, the tensor is {}", input.name(),
                                       input.type().str(), type_text(tensor));
  if (!tensor.defined() || tensor.dtype() != input.dtype() ||
      tensor.shape().rank() != input.shape().rank()) {
    refuse(what);
  }
  for (int axis = 0; axis < input.shape().rank(); ++axis) {
    const std::string name = open_name(input.shape()[axis]);
    const std::int64_t size = tensor.shape()[axis];
    if (name.empty()) continue;
    if (size == 0) refuse(fmt::format("{}: {} is 0", what, name));
    const auto [known, is_new] = sizes.emplace(name, size);
    if (!is_new && known->second != size) {
      refuse(fmt::format("{}: {} is {} in another input, or on another axis", what, name,
                         known->second));
    }
  }
}

}  // namespace

class Predictor::Impl {
 public:
  Impl(const Graph& graph, std::vector<Value> outputs, const std::string& checkpoint,
       const PredictorOptions& options)
      : graph_(graph),
        outputs_(std::move(outputs)),
        batch_(check_outputs(graph, outputs_)),
        device_(device_of(options)),
        variables_(variable_specs(std::span(&graphs_[0], 1), nullptr)),
        values_(variables_),
        path_(find_checkpoint(checkpoint, WholeCheck::kChecksums).path) {
    values_.load(CheckpointReader(path_), options.with, options.modules);
    // In a copy for some sizes nobody knows which variables follow a batch norm.
    if (batch_ == 0) served_ = with_inference({graph, outputs_, false});
    free_.push_back(make_computer());  // so that a graph that no plan can be made of is refused now
  }

  std::int64_t batch() const { return batch_; }
  std::int64_t global_step() const { return values_.global_step(); }
  const std::string& path() const { return path_; }

  std::vector<Tensor> predict(const Inputs& inputs);

 private:
  /// The variables of a graph without their values, which a snapshot has: plans ask for no more.
  class VariableList : public ParameterStore {
   public:
    explicit VariableList(std::vector<VariableSpec> variables) : variables_(std::move(variables)) {}

    std::span<const VariableSpec> variables() const override { return variables_; }
    bool initialised() const override { return false; }
    std::int64_t global_step() const override { return 0; }
    std::unique_ptr<StoreSteps> bind(const PlanBinding&, float) override { return unused(); }
    void write(std::vector<VariableState>, std::int64_t) override { unused(); }
    std::vector<VariableState> read(std::span<const VariableId>) override {
      unused();
      return {};
    }

   private:
    static std::unique_ptr<StoreSteps> unused() {
      PACELINE_CHECK(false && "a predictor reads its snapshot alone");
      return nullptr;
    }

    const std::vector<VariableSpec> variables_;
  };

  /// A plan of the graph, for some sizes of its open dimensions, and its memory on a device.
  struct Planned {
    OpenSizes sizes;
    RewrittenGraph copy;  // for these sizes; none, where the graph has no open dimensions
    DeviceContext context;
  };
  /// What one thread computes with.
  struct Computer {
    explicit Computer(const DeviceOptions& options) : device(make_device(options, clock)) {}
    RealClock clock;
    std::unique_ptr<Device> device;
    StepAccount account{clock};
    std::vector<std::unique_ptr<Planned>> planned;  // those that were used last come last
  };
  /// So many sizes are kept of each thread: what comes again costs no plan.
  static constexpr std::size_t kMostPlanned = 16;

  std::int64_t checked_rows(const Inputs& inputs) const;
  OpenSizes checked_sizes(const Inputs& inputs) const;
  std::vector<Tensor> predict_in_batches(const Inputs& inputs);
  std::vector<Tensor> predict_open(const Inputs& inputs);
  void compute(Planned& planned, const Inputs& inputs, const Rows& rows,
               const std::vector<Tensor>& results) const;

  // Of a graph without open dimensions one thread at a time makes a plan, since the graph builds
  // its index of names at the first lookup.
  Planned& planned(Computer& computer, const OpenSizes& sizes) {
    auto& all = computer.planned;
    const auto known = std::ranges::find(all, sizes, [](const auto& it) { return it->sizes; });
    if (known != all.end()) {
      std::rotate(known, known + 1, all.end());
      return *all.back();
    }
    if (all.size() == kMostPlanned) all.erase(all.begin());
    RewrittenGraph copy;
    if (served_.graph) copy = with_sizes({*served_.graph, served_.roots, false}, sizes);
    all.emplace_back(new Planned{sizes, std::move(copy),
                                 DeviceContext({.store = variables_,
                                                .device = *computer.device,
                                                .step_account = computer.account,
                                                .evaluation_account = computer.account})});
    Planned& made = *all.back();
    made.context.snapshot().share(values_);
    made.context.plans().read_plan(StepKind::kEvaluate, graph_of(made), outputs_of(made),
                                   Mode::kInfer, true);
    return made;
  }
  const Graph& graph_of(const Planned& planned) const {
    return planned.copy.graph ? *planned.copy.graph : graph_;
  }
  const std::vector<Value>& outputs_of(const Planned& planned) const {
    return planned.copy.graph ? planned.copy.roots : outputs_;
  }

  std::unique_ptr<Computer> make_computer() {
    auto made = std::make_unique<Computer>(device_);
    if (!served_.graph) planned(*made, {});
    return made;
  }

  std::unique_ptr<Computer> take_computer() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return make_computer();
    std::unique_ptr<Computer> taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }

  const Graph& graph_;
  const Graph* const graphs_[1] = {&graph_};
  const std::vector<Value> outputs_;
  const std::int64_t batch_;
  const DeviceOptions device_;
  VariableList variables_;
  VariableSnapshot values_;
  const std::string path_;
  RewrittenGraph served_;  // of a graph with open dimensions: as it is in inference
  std::mutex mutex_;
  std::vector<std::unique_ptr<Computer>> free_;  // those that no call uses
};

std::int64_t Predictor::Impl::checked_rows(const Inputs& inputs) const {
  std::int64_t rows = 0;
  for (const auto& [input, tensor] : inputs) {
    if (!input) refuse("an input is no value");
    const std::string what = fmt::format("input '{}' is {}", input.name(), input.type().str());
    if (input.shape().rank() == 0 || input.shape()[0] != batch_) {
      refuse(fmt::format("{}: its dimension 0 must be the batch, {}", what, batch_));
    }
    if (!tensor.defined()) refuse(what + ", the tensor is empty");
    const ValueType given{tensor.dtype(), tensor.shape()};
    if (tensor.shape().rank() == 0 || tensor.shape()[0] == 0 || tensor.dtype() != input.dtype() ||
        tensor.shape() != with_rows(input.shape(), tensor.shape()[0])) {
      refuse(fmt::format("{}, the tensor is {}: all but the number of rows must be the same", what,
                         given.str()));
    }
    if (rows > 0 && tensor.shape()[0] != rows) {
      refuse(fmt::format("input '{}' has {} rows, and '{}' {}", inputs[0].first.name(), rows,
                         input.name(), tensor.shape()[0]));
    }
    rows = tensor.shape()[0];
  }
  if (rows == 0) refuse("no input is given");
  return rows;
}

void Predictor::Impl::compute(Planned& planned, const Inputs& inputs, const Rows& rows,
                              const std::vector<Tensor>& results) const {
  const auto feed = [&](Feed& to) {
    for (const auto& [input, tensor] : inputs) copy_in(tensor, rows, to.view(input));
  };
  const std::span<const TensorView> computed =
      planned.context.read(StepKind::kEvaluate, graph_, outputs_, Mode::kInfer, true, feed);
  for (std::size_t i = 0; i < results.size(); ++i) copy_out(computed[i], rows, results[i]);
}

// Returns a size for each open dimension of the inputs that the outputs depend on.
OpenSizes Predictor::Impl::checked_sizes(const Inputs& inputs) const {
  OpenSizes sizes;
  for (const auto& [input, tensor] : inputs) {
    if (!input) refuse("an input is no value");
    add_sizes(input, tensor, sizes);
  }
  for (const auto& node : served_.graph->nodes()) {
    if (node->op().name != "input") continue;
    const Value input = node->output(0);
    for (const std::string& name : open_names(std::span(&input, 1))) {
      if (sizes.contains(name)) continue;
      throw Error(
          ErrorCode::kFailedPrecondition,
          fmt::format("[predictor] no input that was given tells the size of {}: '{}' is {}", name,
                      input.name(), input.type().str()));
    }
  }
  return sizes;
}

std::vector<Tensor> Predictor::Impl::predict_open(const Inputs& inputs) {
  const OpenSizes sizes = checked_sizes(inputs);
  std::unique_ptr<Computer> computer = take_computer();
  Planned& planned = this->planned(*computer, sizes);
  const auto feed = [&](Feed& to) {
    for (const auto& [input, tensor] : inputs) to.set(input, tensor);
  };
  std::vector<Tensor> results = copies_of(planned.context.read(
      StepKind::kEvaluate, graph_of(planned), outputs_of(planned), Mode::kInfer, true, feed));
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(computer));
  return results;
}

std::vector<Tensor> Predictor::Impl::predict(const Inputs& inputs) {
  return served_.graph ? predict_open(inputs) : predict_in_batches(inputs);
}

std::vector<Tensor> Predictor::Impl::predict_in_batches(const Inputs& inputs) {
  const std::int64_t rows = checked_rows(inputs);
  std::vector<Tensor> results;
  std::ranges::transform(outputs_, std::back_inserter(results), [&](const Value& output) {
    return Tensor(output.dtype(), with_rows(output.shape(), rows));
  });
  std::unique_ptr<Computer> computer = take_computer();
  for (std::int64_t first = 0; first < rows; first += batch_) {
    compute(*computer->planned[0], inputs, {first, std::min(batch_, rows - first)}, results);
  }
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(computer));
  return results;
}

SavedModel saved_model(const std::string& checkpoint) {
  const ChosenCheckpoint chosen = find_checkpoint(checkpoint, WholeCheck::kChecksums);
  const CheckpointReader reader(chosen.path);
  const CheckpointIndex& index = reader.index();
  SavedModel saved{.path = chosen.path,
                   .global_step = index.global_step,
                   .settings = index.settings,
                   .data_names = index.data};
  if (const auto model = index.notes.find("model"); model != index.notes.end()) {
    saved.model = model->second;
  }
  for (const FoundCheckpoint& torn : chosen.passed_over) {
    saved.passed_over.push_back(passed_over_text(torn));
  }
  return saved;
}

Predictor::Predictor(const Graph& graph, std::vector<Value> outputs, const std::string& checkpoint,
                     const PredictorOptions& options)
    : impl_(std::make_unique<Impl>(graph, std::move(outputs), checkpoint, options)) {}

Predictor::~Predictor() = default;

std::vector<Tensor> Predictor::predict(const std::vector<std::pair<Value, Tensor>>& inputs) const {
  return impl_->predict(inputs);
}

std::int64_t Predictor::batch() const { return impl_->batch(); }
std::int64_t Predictor::global_step() const { return impl_->global_step(); }
const std::string& Predictor::checkpoint() const { return impl_->path(); }

}  // namespace paceline
