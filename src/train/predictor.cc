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
#include "graph/passes.h"
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
                fmt::format("[predictor] {} threads: must be 0, for one on each core, or more",
                            options.threads));
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

// Returns the number of rows in a batch; 0 if the graph has open dimensions. Throws
// kInvalidArgument for outputs that do not go by rows.
std::int64_t check_outputs(const Graph& graph, std::span<const Value> outputs) {
  if (outputs.empty()) refuse("no output is asked for");
  const bool open = !open_inputs(graph).empty();
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

/// The rows of the given tensors that one batch is made of.
struct Rows {
  std::int64_t first = 0, count = 0;
};

std::size_t row_bytes_of(const TensorView& view) {
  return view.bytes() / std::size_t(view.shape[0]);
}

// Copies the rows into the memory of a batch, and fills the rest of that memory with zeros.
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
        path_(find_checkpoint(checkpoint, WholeCheck::kChecksums).path),
        served_(batch_ == 0 ? with_inference({graph, outputs_, false}) : RewrittenGraph()) {
    values_.load(CheckpointReader(path_), options.with, options.modules);
    for (std::size_t i = 0; served_.graph && i < served_.graph->nodes().size(); ++i) {
      const Node& node = *served_.graph->nodes()[i];
      if (node.op().name == "input") needed_.push_back(node.name());
    }
    // Makes a plan now, so that a graph that cannot be planned is refused here.
    free_.push_back(make_computer());
  }

  std::int64_t batch() const { return batch_; }
  std::int64_t global_step() const { return values_.global_step(); }
  const std::string& path() const { return path_; }

  std::vector<Tensor> predict(const Inputs& inputs);

 private:
  /// A store with the variables of a graph and without values: plans read only this list, and
  /// evaluations read a snapshot.
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

  /// A device and its plans, with which one thread computes.
  struct Computer {
    Computer(const DeviceOptions& options, VariableList& variables)
        : device(make_device(options, clock)),
          context({.store = variables,
                   .device = *device,
                   .step_account = account,
                   .evaluation_account = account}) {}
    RealClock clock;
    std::unique_ptr<Device> device;
    StepAccount account{clock};
    DeviceContext context;
  };

  void check_input(Value input) const {
    if (!input) refuse("an input is no value");
    if (&input.graph() == &graph_) return;
    refuse(fmt::format("input '{}' is of another graph", input.name()));
  }
  // True if the outputs of a graph with open dimensions depend on the input.
  bool is_needed(Value input) const {
    return std::ranges::find(needed_, input.node().name()) != needed_.end();
  }
  std::int64_t checked_rows(const Inputs& inputs) const;
  std::vector<Tensor> predict_in_batches(const Inputs& inputs);
  std::vector<Tensor> predict_open(const Inputs& inputs);
  void compute(Computer& computer, const Inputs& inputs, const Rows& rows,
               const std::vector<Tensor>& results) const;

  // Called by one thread at a time, since the graph builds its index of names at the first lookup.
  // For a graph with open dimensions no plan is made yet: the first inputs say the sizes.
  std::unique_ptr<Computer> make_computer() {
    auto made = std::make_unique<Computer>(device_, variables_);
    made->context.snapshot().share(values_);
    if (batch_ > 0) {
      made->context.plans().read_plan(StepKind::kEvaluate, graph_, outputs_, Mode::kInfer, true);
    }
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
  // What the outputs need of a graph with open dimensions.
  const RewrittenGraph served_;
  std::vector<std::string> needed_;  // the names of the inputs of served_
  std::mutex mutex_;
  std::vector<std::unique_ptr<Computer>> free_;  // the computers that no call uses
};

std::int64_t Predictor::Impl::checked_rows(const Inputs& inputs) const {
  std::int64_t rows = 0;
  for (const auto& [input, tensor] : inputs) {
    check_input(input);
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

void Predictor::Impl::compute(Computer& computer, const Inputs& inputs, const Rows& rows,
                              const std::vector<Tensor>& results) const {
  const auto feed = [&](Feed& to) {
    for (const auto& [input, tensor] : inputs) copy_in(tensor, rows, to.view(input));
  };
  const std::span<const TensorView> computed =
      computer.context.read(StepKind::kEvaluate, graph_, outputs_, Mode::kInfer, true, feed);
  for (std::size_t i = 0; i < results.size(); ++i) copy_out(computed[i], rows, results[i]);
}

std::vector<Tensor> Predictor::Impl::predict_open(const Inputs& inputs) {
  for (const auto& [input, tensor] : inputs) check_input(input);
  std::unique_ptr<Computer> computer = take_computer();
  const auto feed = [&](Feed& to) {
    for (const auto& [input, tensor] : inputs) {
      if (is_needed(input)) to.set(input, tensor);
    }
  };
  std::vector<Tensor> results = copies_of(computer->context.read(
      StepKind::kEvaluate, *served_.graph, served_.roots, Mode::kInfer, true, feed));
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(computer));
  return results;
}

std::vector<Tensor> Predictor::Impl::predict(const Inputs& inputs) {
  return batch_ == 0 ? predict_open(inputs) : predict_in_batches(inputs);
}

std::vector<Tensor> Predictor::Impl::predict_in_batches(const Inputs& inputs) {
  const std::int64_t rows = checked_rows(inputs);
  std::vector<Tensor> results;
  std::ranges::transform(outputs_, std::back_inserter(results), [&](const Value& output) {
    return Tensor(output.dtype(), with_rows(output.shape(), rows));
  });
  std::unique_ptr<Computer> computer = take_computer();
  for (std::int64_t first = 0; first < rows; first += batch_) {
    compute(*computer, inputs, {first, std::min(batch_, rows - first)}, results);
  }
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(computer));
  return results;
}

const std::vector<std::string>& SavedModel::names(const std::string& key) const {
  const auto known = data_names.find(key);
  if (known != data_names.end()) return known->second;
  throw Error(ErrorCode::kNotFound,
              fmt::format("{} does not say the names of '{}': take a checkpoint of a run whose "
                          "SessionOptions::data_names has them",
                          path, key));
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
