// Runs a plan, step after step: kernels in order, and the store's calls between them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/plan.h"
#include "exec/step_observer.h"
#include "kernels/device.h"
#include "paceline/tensor.h"
#include "trace/step_account.h"

namespace paceline {

/// Says which inputs of a plan were filled for the next step. Allocates nothing after the
/// constructor, except for error messages.
class FedInputs {
 public:
  explicit FedInputs(const Plan& plan);
  /// Begins the inputs of another step. The inputs that earlier steps keep count as filled if this
  /// step `has_kept` them; all others count as not filled.
  void begin(bool has_kept = true);
  /// Notes that the input was filled for this step alone. Ignores a name that is no input of the
  /// plan.
  void note(std::string_view input);
  /// Keeps the input: it counts as filled in later steps too. Throws kFailedPrecondition if it was
  /// not filled for this step.
  void keep(std::string_view input);
  /// Keeps the input as above, and notes that its values are those of `tensor`.
  void keep(std::string_view input, const Tensor& tensor);
  /// Returns true if the input keeps the values of this very tensor; the input then counts as
  /// filled.
  bool has_kept(std::string_view input, const Tensor& tensor);
  /// Takes inputs from `other`, which belongs to the same plan on another device. Calls copy(name),
  /// which copies the values, for each input that `other` keeps and that was not filled here for
  /// this step. A value that this object keeps is copied only if `other` was filled anew.
  template <typename Copy>
  void take_kept(const FedInputs& other, Copy copy) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Input& own = inputs_[i];
      const Input& its = other.inputs_[i];
      if (own.filled || !its.kept || (own.fed && !its.filled)) continue;
      copy(own.name);
      own.fed = own.kept = true;
    }
  }
  /// Throws kFailedPrecondition, naming an input that the plan reads and that was not filled.
  void check() const;

 private:
  struct Input {
    std::string name;
    bool read = false;  // true if the plan reads it
    bool fed = false, kept = false;
    bool filled = false;  // true if filled for this step, not only kept
    // The tensor whose values the input keeps; undefined if the values come from elsewhere.
    Tensor once;
  };
  Input* find(std::string_view name);

  std::vector<Input> inputs_;
};

/// Copies of a device's memory that the host reads.
class HostCopies {
 public:
  /// Returns a view that the host can read: `view` itself if `device` computes in host memory, else
  /// a copy, which refresh() fills. The view is valid as long as this object lives.
  TensorView of(const TensorView& view, Device& device);
  /// Queues all copies on `device`, in whose memory the views lie. The copies have the values once
  /// the device has synchronised. Allocates nothing.
  void refresh(Device& device) const;

 private:
  struct Copy {
    TensorView from;
    Buffer to;
  };
  std::vector<Copy> copies_;
};

/// The memory of a graph's local variables in this task. All plans of the graph share it.
class LocalMemory {
 public:
  /// Allocates the local variables of `graph` in memory of `device`, which must outlive this
  /// object, and sets them to zero; those with open dimensions are left out. A local that `common`
  /// has with the same type lies in the memory of `common`, which must outlive this object, too.
  LocalMemory(const Graph& graph, Device& device, const LocalMemory* common = nullptr);
  /// Returns the local in the device's memory. Throws kNotFound.
  TensorView view(std::string_view name) const;
  bool contains(std::string_view name) const { return views_.contains(name); }
  const std::map<std::string, TensorView, std::less<>>& views() const { return views_; }
  /// Returns a copy of the local as the steps so far have left it. Throws kNotFound.
  Tensor read(std::string_view name) const;
  /// Sets the local to `value`, which must have its type and shape. Throws kNotFound.
  void write(std::string_view name, const Tensor& value);
  /// Sets all locals to zero, except those that lie in another object's memory.
  void reset();

 private:
  Device& device_;
  Buffer memory_;
  std::map<std::string, TensorView, std::less<>> views_;
};

/// Collects the rows of sparse variables that a batch reads, in memory that is allocated once.
class RowCollector {
 public:
  /// `ids[i]` are views of the memory of reads[i].ids, which must outlive the collector.
  RowCollector(std::span<const RowReads> reads, std::span<const std::vector<TensorView>> ids);
  /// Returns the rows, whose unique ids ascend; they are valid until the next call. Allocates
  /// nothing. Throws kInvalidArgument naming an id that is no row.
  std::span<const RowSet> collect();

 private:
  struct Reads {
    std::int64_t rows;
    bool all;
    std::vector<TensorView> ids;
    std::vector<std::int32_t> unique;  // has room for all ids
  };
  std::size_t unite(Reads& reads);

  std::vector<Reads> reads_;
  std::vector<RowSet> sets_;
};

/// The caller's part of one step.
struct StepRequest {
  StepKind kind = StepKind::kTrain;
  /// Every variable's learning rate in a train step, by VariableId.
  std::span<const float> learning_rates;
  std::int64_t examples = 0;
  StepIdentity identity;  // its .step is the task's own step
  /// Fills the inputs for the step after this one, if wants_next_inputs() is true. Returns false if
  /// the next inputs are not known. The executor calls it before end_step, once nothing in this
  /// step reads this step's inputs any more. May be null.
  const std::function<bool()>* fill_next = nullptr;
};

/// Returns `steps` itself if the store gives memory of `device`. For a store in host memory,
/// returns steps with memory on the device. They upload a value when the plan needs it; of a sparse
/// variable they upload only the rows that the batch reads. They download a contribution to the
/// store's place when it is ready, and pass the store the event of that download. Throws
/// kFailedPrecondition for a store in another device's memory. `device` must outlive the steps,
/// which serve all plans that use the variables of `plan`.
std::shared_ptr<StoreSteps> steps_on(Device& device, std::shared_ptr<StoreSteps> steps,
                                     const Plan& plan);

/// For one thread. Plan, locals, device and account must outlive the executor. A step allocates
/// nothing.
class Executor {
 public:
  /// Executors that make their steps by turns may share `steps` and `arena`. The arena is the
  /// memory for the values of a step. If it is null or too small for the plan, the executor
  /// allocates its own.
  Executor(Plan& plan, std::shared_ptr<StoreSteps> steps, LocalMemory& locals, Device& device,
           StepAccount& account, std::shared_ptr<Buffer> arena = nullptr);

  /// Returns the memory of the values of a step.
  const std::shared_ptr<Buffer>& arena() const { return arena_; }

  /// Returns the host memory of an input or a local variable by its scoped name; the memory is the
  /// same in every step. An input keeps what was written until it is written anew. Throws
  /// kNotFound, and kFailedPrecondition for a local variable in a device's own memory.
  TensorView view(std::string_view name) const;
  /// Returns the memory of an input or local of the graph that the plan was made of. Throws as
  /// above.
  TensorView view(Value input) const { return view(input.node().name()); }
  /// The record of which inputs were filled, for the code that fills them; run() does not use it.
  FedInputs& fed_inputs() { return fed_inputs_; }

  /// Shows the next step to the observer, which must outlive that step. That step also
  /// takes the time of the observer's calls, and waits for each computed value that it shows.
  void observe_next_step(StepObserver& observer) { observer_ = &observer; }
  /// Makes one step. Its time counts as compute, pull (begin_step, need) and push (place, ready,
  /// end_step); afterwards the account counts as before. The handle is valid until the next step.
  StepHandle& run(const StepRequest& request);
  /// True if the next inputs should be filled before this step ends: the store can then send the
  /// rows that they name together with its answer to this step. False if an input is read after a
  /// step (fetched, or as the loss), or if a local variable decides which rows are read.
  bool wants_next_inputs() const { return wants_next_inputs_; }

  /// Returns PlanRequest::fetches[i] of the last step; it is valid until the next step. A fetched
  /// variable has the value that the step read.
  TensorView fetched(std::size_t i) const { return fetched_[i]; }
  std::size_t fetches() const { return plan_.fetches.size(); }
  /// Returns the loss of the last train step.
  double loss() const;
  bool clips() const { return plan_.clipped(); }
  /// Returns the norm of this plan's own contributions, also if the store clips by a norm that it
  /// computes. Call it only if clips() is true.
  double global_norm() const;

 private:
  /// An instruction with its memory. Views into the store's memory are set anew in each step.
  struct Command {
    Instruction::Kind kind = Instruction::Kind::kRun;
    VariableId variable = -1;
    int storage = -1;  // the storage of outputs[0]
    bool streamed = false;
    bool lends = false;
    Kernel* kernel = nullptr;
    const Node* node = nullptr;  // the kernel's node
    std::vector<TensorView> inputs, outputs;
    std::span<std::byte> scratch;
    HostCopies ids;  // copies of the row ids, for kReady
  };

  /// Kernels that wait for input from outside, each with the commands for its place and hand-over.
  /// They run in the order in which their inputs arrive.
  struct Awaited {
    struct Part {
      std::size_t begin = 0, end = 0;  // range in commands_
      const Node* node = nullptr;
    };
    std::vector<Part> parts;
    // The parts that have not run in this step, and their nodes. They are members so that their
    // memory is kept between steps.
    std::vector<Part> left;
    std::vector<const Node*> nodes;
  };

  void check_repeatable() const;
  void upload_constants();
  RowCollector collector();
  Command prepare(const Instruction& instruction);
  void note_store_views();
  std::byte* address_of(std::size_t storage) const;
  TensorView view_of(SlotIndex slot) const;
  TensorView host_view_of(SlotIndex slot, HostCopies& copies);
  StepHandle& run_once(const StepRequest& request);
  StepHandle& end_early();
  void wait_for_device();
  bool inputs_are_free_early() const;
  void find_rows(const StepIdentity& identity);
  void begin(const StepRequest& request);
  void run_commands(std::size_t begin, std::size_t end, const StepIdentity& identity);
  void run_range(std::size_t begin, std::size_t end, Activity& activity,
                 const StepIdentity& identity);
  void run_awaited(Awaited& awaited, Activity& activity, const StepIdentity& identity);
  void run_command(Command& command, const StepIdentity& identity);
  void count_as(Activity wanted, Activity& activity);
  void find_awaited();
  Awaited::Part awaited_part(std::size_t at) const;
  void give_address(int storage, const AsyncView& memory);
  void give_place(const Command& command);
  void run_kernel(Command& command, const StepIdentity& identity);
  void hand_over(const Command& command);
  void end_look();
  void show_inputs();
  void show_output(const Command& command);
  void show_contribution(VariableId variable, std::optional<std::int64_t> rows);
  void show(const TensorView& view, const std::function<void(const TensorView&)>& to);
  OutputSink& observed(OutputSink& sink, const Command& command);
  float clip_scale() const;

  Plan& plan_;
  FedInputs fed_inputs_;
  std::shared_ptr<StoreSteps> steps_;
  LocalMemory& locals_;
  Device& device_;
  StepAccount& account_;
  // The host fills and reads these instead of a device's own memory.
  Buffer host_inputs_;
  HostCopies ids_, results_;
  std::shared_ptr<Buffer> arena_;
  Buffer inputs_;
  std::vector<Buffer> constants_;  // by storage; empty if kernels read the graph's own memory
  std::vector<Command> commands_;
  std::vector<Awaited> awaited_;
  struct StoreView {
    TensorView* view;
    std::size_t offset;  // in the memory that the store gives
  };
  std::vector<std::vector<StoreView>> store_views_;  // by storage
  OutputSink* sink_ = nullptr;                       // for the next streamed kernel
  /// By variable: where a kernel that may lend has left its contribution; null if it lies in its
  /// place.
  std::map<VariableId, const float*> lent_;
  SumExchange* exchange_ = nullptr;   // of the current step; may be null
  StepObserver* observer_ = nullptr;  // of this step or the next; may be null
  /// By variable: where the contributions of an observed step lie. A streamed one lies in its
  /// copying sink.
  std::map<VariableId, TensorView> contributions_;
  std::vector<std::unique_ptr<OutputSink>> copying_sinks_;
  std::vector<TensorView> fetched_;
  TensorView loss_, global_norm_;
  RowCollector rows_;
  std::span<const RowSet> rows_read_;  // the rows that the current inputs name
  bool rows_known_ = false;
  const bool wants_next_inputs_;
};

}  // namespace paceline
