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

/// The inputs of a plan that were filled for the next step.
/// Allocates nothing once it is made, except for the names of errors.
class FedInputs {
 public:
  explicit FedInputs(const Plan& plan);
  /// From now on inputs are filled for another step. Those that are kept count as filled.
  void begin();
  /// A name that is no input of the plan is ignored.
  void note(std::string_view input);
  /// The input counts as filled in later steps too. Throws kFailedPrecondition when it was not
  /// filled for this step.
  void keep(std::string_view input);
  /// `tensor` is what the input keeps.
  void keep(std::string_view input, const Tensor& tensor);
  /// The input keeps the values of this very tensor.
  bool keeps(std::string_view input, const Tensor& tensor) const;
  /// For the same plan on another device: an input that was not filled for this step, and that
  /// `other` keeps, becomes what it is there. Calls copy(name) for each.
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
    bool read = false;  // by the plan
    bool fed = false, kept = false;
    bool filled = false;  // for this step, and not only kept
    Tensor once;          // the value that it keeps, where that is a tensor of the program
  };
  Input* find(std::string_view name);

  std::vector<Input> inputs_;
};

/// Copies of a device's memory that the host reads.
class HostCopies {
 public:
  /// Returns a view that the host can read: `view` itself where `device` computes in host memory,
  /// else a copy that has its values once a refresh was made. It is valid as long as this object.
  TensorView of(const TensorView& view, Device& device);
  /// Queues a copy of every view on the device that has them. Allocates nothing.
  void refresh(Device& device) const;

 private:
  struct Copy {
    TensorView from;
    Buffer to;
  };
  std::vector<Copy> copies_;
};

/// The memory of a graph's local variables in this task, which all plans of the graph share.
class LocalMemory {
 public:
  /// Makes all locals of `graph` in memory of `device`, which must outlive it, and sets them to
  /// zero.
  LocalMemory(const Graph& graph, Device& device);
  /// Returns the local in the device's memory. Throws kNotFound.
  TensorView view(std::string_view name) const;
  bool contains(std::string_view name) const { return views_.contains(name); }
  const std::map<std::string, TensorView, std::less<>>& views() const { return views_; }
  /// Returns a copy of the local as the steps so far have left it. Throws kNotFound.
  Tensor read(std::string_view name) const;
  /// Sets the local to `value`, which must have its type and shape. Throws kNotFound.
  void write(std::string_view name, const Tensor& value);
  /// Sets all locals to zero.
  void reset();

 private:
  Device& device_;
  Buffer memory_;
  std::map<std::string, TensorView, std::less<>> views_;
};

/// Collects the rows of sparse variables that a batch reads, in memory that is made once.
class RowCollector {
 public:
  /// `ids[i]` are the memories of reads[i].ids; they must outlive the collector.
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
  /// The rates of a train step by VariableId, for every variable of the store.
  std::span<const float> learning_rates;
  std::int64_t examples = 0;
  StepIdentity identity;  // .step is the task's own step
  /// Fills the inputs for the step after this one, if the executor wants_next_inputs. Returns false
  /// when they are not known. It is called when nothing of this step reads its own inputs any more,
  /// before end_step.
  const std::function<bool()>* fill_next = nullptr;
};

/// One thread uses it. Plan, locals, device and account must outlive it. A step allocates nothing.
class Executor {
 public:
  Executor(Plan& plan, std::unique_ptr<StoreSteps> steps, LocalMemory& locals, Device& device,
           StepAccount& account);

  /// Returns the host memory of an input or a local variable by its scoped name, which is the same
  /// in every step. An input keeps what was written until it is written anew. Throws kNotFound, and
  /// kFailedPrecondition for a local variable in a device's own memory.
  TensorView view(std::string_view name) const;
  /// The same for a value of the graph that the plan was made of.
  TensorView view(Value input) const { return view(input.node().name()); }
  /// A note of whoever fills the inputs; run() does not look at it.
  FedInputs& fed_inputs() { return fed_inputs_; }

  /// Shows the next step to the observer, which must outlive it. The step then costs what the
  /// observer does, and waits for the device where it looks.
  void observe_next_step(StepObserver& observer) { observer_ = &observer; }
  /// Makes one step. Its time counts as compute, pull (begin_step, need) and push (place, ready,
  /// end_step); time after it counts as it did before. The handle is valid until the next step.
  StepHandle& run(const StepRequest& request);
  /// True when the store can bring the rows that the next inputs name with this step's answer, and
  /// the inputs can be filled so early: nothing that is read after a step lies in an input, and no
  /// local variable says which rows they name.
  bool wants_next_inputs() const { return wants_next_inputs_; }

  /// Returns PlanRequest::fetches[i] of the last step, which is valid until the next one. A fetched
  /// variable has the value that the step read.
  TensorView fetched(std::size_t i) const { return fetched_[i]; }
  std::size_t fetches() const { return plan_.fetches.size(); }
  /// The loss of the last train step.
  double loss() const;
  bool clips() const { return plan_.clipped(); }
  /// The norm of this plan's own contributions, if it clips, whoever computes the norm to clip by.
  double global_norm() const;

 private:
  /// An instruction with its memory. Views into the store's memory are renewed in each step.
  struct Command {
    Instruction::Kind kind = Instruction::Kind::kRun;
    VariableId variable = -1;
    int storage = -1;  // the storage of kNeed and kPlace
    bool streamed = false;
    bool lends = false;
    Kernel* kernel = nullptr;
    const Node* node = nullptr;  // the kernel's
    std::vector<TensorView> inputs, outputs;
    std::span<std::byte> scratch;
    HostCopies ids;  // the inputs of kReady of rows are copies in it
  };

  /// Commands that wait for something from outside, each with its place and its hand-over. They run
  /// in the order in which it comes.
  struct Awaited {
    struct Part {
      std::size_t begin = 0, end = 0;  // in commands_
      const Node* node = nullptr;
    };
    std::vector<Part> parts;
    // Kept for their memory: those that have not run.
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
  std::unique_ptr<StoreSteps> steps_;
  LocalMemory& locals_;
  Device& device_;
  StepAccount& account_;
  // The host fills and reads these in place of a device's own memory.
  Buffer host_inputs_;
  HostCopies ids_, results_;
  Buffer arena_, inputs_;
  std::vector<Buffer> constants_;  // by storage; empty when kernels read the graph's own
  std::vector<Command> commands_;
  std::vector<Awaited> awaited_;
  struct StoreView {
    TensorView* view;
    std::size_t offset;  // in the memory that the store gives
  };
  std::vector<std::vector<StoreView>> store_views_;  // by storage
  OutputSink* sink_ = nullptr;                       // for the next streamed kernel
  std::map<VariableId, const float*> lent_;  // contributions of this step; null: in its place
  SumExchange* exchange_ = nullptr;          // in a train step
  StepObserver* observer_ = nullptr;         // of the next step; null: nobody looks
  /// The contributions of an observed step, by variable: where they lie, and copies of those that
  /// are streamed.
  std::map<VariableId, TensorView> contributions_;
  std::vector<std::unique_ptr<OutputSink>> copying_sinks_;
  std::vector<TensorView> fetched_;
  TensorView loss_, global_norm_;
  RowCollector rows_;
  std::span<const RowSet> rows_read_;  // the rows that the present inputs name
  bool rows_known_ = false;
  const bool wants_next_inputs_;
};

}  // namespace paceline
