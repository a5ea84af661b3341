// A plan is a graph compiled for a device: a schedule, a layout of memory that is made once, and
// the moments at which variables are first needed and contributions become ready.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_space.h"
#include "exec/parameter_store.h"
#include "graph/rewrite.h"
#include "kernels/device.h"
#include "paceline/minimize.h"

namespace paceline {

/// What a plan is to compute: fetched values, and for a train step the contributions to variables.
struct PlanRequest {
  const Graph* graph = nullptr;
  std::vector<Value> fetches;          // values that the caller reads after each step
  const Training* training = nullptr;  // null if nothing is updated
  bool run_assignments = true;         // false: local variables keep their values
  RewriteOptions rewrite;
  /// True for a store that takes streams: a dense contribution goes to its sink if the kernel that
  /// makes the contribution can stream its output.
  bool stream_updates = false;
  /// True for a store that takes lent contributions: a kernel that can leaves its contribution in
  /// memory of its own.
  bool lend_updates = false;
};

/// Memory that holds values during a step. Values that are views of one another share a storage;
/// each is all of the storage or a part.
struct Storage {
  enum class Kind : std::uint8_t {
    kArena,     // memory of the executor, reused within a step
    kInput,     // memory of the executor, filled before each step
    kLocal,     // memory of the task, kept from step to step
    kConstant,  // memory that the graph owns
    kVariable,  // memory of the store, known when need() returns
    kPlace,     // memory of the store, known when place() returns
  };
  Kind kind = Kind::kArena;
  MemorySpace space;  // the space of the plan's device; for kConstant, the host's
  std::size_t bytes = 0;
  std::size_t offset = 0;    // kArena, kInput
  VariableId variable = -1;  // kVariable, kPlace
  std::string name;          // kLocal
  Tensor constant;           // kConstant
};

/// Where a value lies: its type, an index into Plan::storages, and its offset in that storage in
/// bytes.
struct Slot {
  ValueType type;
  int storage = -1;
  std::size_t offset = 0;
};
using SlotIndex = int;

/// One entry of the schedule.
struct Instruction {
  enum class Kind : std::uint8_t {
    kNeed,   // outputs[0] ← store.need(variable)
    kPlace,  // outputs[0] ← store.place(variable), or the next kernel's sink if streamed
    kRun,    // runs the kernel
    kReady,  // store.ready(variable): after the last read of the variable and the contribution
    // outputs[0] ← inputs[0], where no kernel can write the value directly.
    kCopy,
  };
  Kind kind = Kind::kRun;
  VariableId variable = -1;
  int kernel = -1;                // an index into Plan::kernels
  std::vector<SlotIndex> inputs;  // for kReady of rows: the ids and their count
  std::vector<SlotIndex> outputs;
  bool streamed = false;  // kPlace and kRun: no memory holds the whole contribution
  bool lends = false;     // kRun: the contribution may stay in the kernel's memory
};

/// Says which rows of a sparse variable a batch reads.
struct RowReads {
  VariableId variable = -1;
  std::int64_t rows = 0;       // the rows of the whole variable
  bool all = false;            // an op other than a look-up reads it, so the batch reads all rows
  std::vector<SlotIndex> ids;  // int32 values of any shape
};

/// A plan is made by make_plan and run by an executor. The device must outlive the plan.
struct Plan {
  struct KernelUse {
    std::unique_ptr<Kernel> kernel;
    const Node* node = nullptr;  // in `graph`
    std::size_t scratch_offset = 0, scratch_bytes = 0;
  };

  std::unique_ptr<Graph> graph;  // the rewritten graph
  std::vector<KernelUse> kernels;
  std::vector<Storage> storages;
  std::vector<Slot> slots;
  std::vector<Instruction> instructions;
  /// The number of instructions that run before begin_step: they compute the ids of the rows that
  /// the batch reads. No other instruction writes the memory that they write, so they can run for
  /// the next batch while results of this step are still being read.
  std::size_t prologue = 0;
  std::size_t arena_bytes = 0, input_bytes = 0;
  std::map<std::string, SlotIndex, std::less<>> inputs;  // by name in the requested graph
  std::vector<SlotIndex> fetches;
  SlotIndex loss = -1, global_norm = -1;  // −1 if there is none
  // 0 if the norm is not computed; infinity if it is only checked.
  float clip_norm = 0;
  // True if end_step gets kSkipContribution when the norm is not finite.
  bool skips_not_finite = false;
  PlanBinding binding;
  std::vector<RowReads> row_reads;

  bool clipped() const { return global_norm >= 0; }
};

/// Rewrites the graph, schedules it, lays out memory and makes kernels. Throws kNotFound if `specs`
/// lacks a variable of the graph. Throws kInvalidArgument if `specs` and the graph disagree on a
/// variable, or if the rows that a batch reads of a sparse variable depend on a variable.
std::unique_ptr<Plan> make_plan(const PlanRequest& request, std::span<const VariableSpec> specs,
                                Device& device);

/// Makes the store's list of variables for several graphs. It has every variable once, by name; the
/// training that updates a variable gives its rule, weight decay and sparseness. Throws
/// kInvalidArgument naming a variable on which graphs disagree, which two trainings update, or
/// which is trained and in none of the graphs.
std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                         std::span<const Training> trainings);
/// Makes the list with one training, or with none if `training` is null.
inline std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                                const Training* training) {
  return variable_specs(graphs, std::span(training, training != nullptr ? 1 : 0));
}

}  // namespace paceline
