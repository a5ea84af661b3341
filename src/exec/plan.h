// A plan: a graph compiled for a device. Topological schedule, buffer lifetimes, one arena laid
// out once; where variables are first needed and where contributions become ready.
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

/// What a plan computes: fetched values, and for a train step the updates.
struct PlanRequest {
  const Graph* graph = nullptr;
  std::vector<Value> fetches;          // to be read after each step
  const Training* training = nullptr;  // null: nothing is updated
  bool run_assignments = true;         // local variables change
  RewriteOptions rewrite;
  /// For a store that takes streams: dense contributions go to its sinks where their kernels can.
  bool stream_updates = false;
};

/// Memory that values live in during a step. Values that are views of one another share one, each
/// all of it or a part.
struct Storage {
  enum class Kind : std::uint8_t {
    kArena,     // the executor's, reused within a step
    kInput,     // the executor's, filled before each step
    kLocal,     // the task's, kept from step to step
    kConstant,  // the graph's
    kVariable,  // the store's, known when need() returns
    kPlace,     // the store's, known when place() returns
  };
  Kind kind = Kind::kArena;
  MemorySpace space;  // the plan's device's; kConstant: the host's
  std::size_t bytes = 0;
  std::size_t offset = 0;    // kArena, kInput
  VariableId variable = -1;  // kVariable, kPlace
  std::string name;          // kLocal
  Tensor constant;           // kConstant
};

/// A value: its type, an index into Plan::storages, and where in that it begins, in bytes.
struct Slot {
  ValueType type;
  int storage = -1;
  std::size_t offset = 0;
};
using SlotIndex = int;

/// One step of the schedule.
struct Instruction {
  enum class Kind : std::uint8_t {
    kNeed,   // outputs[0] ← store.need(variable)
    kPlace,  // outputs[0] ← store.place(variable); streamed: the next kernel's sink
    kRun,    // kernel
    kReady,  // store.ready(variable): after the last read of the variable and the contribution
    kCopy,   // outputs[0] ← inputs[0] (locals; contributions that no kernel can write in place)
  };
  Kind kind = Kind::kRun;
  VariableId variable = -1;
  int kernel = -1;                // index into Plan::kernels
  std::vector<SlotIndex> inputs;  // kReady of rows: ids, count
  std::vector<SlotIndex> outputs;
  bool streamed = false;  // kPlace, kRun: a contribution that no memory holds as a whole
};

/// Which rows of a sparse variable a batch reads.
struct RowReads {
  VariableId variable = -1;
  std::int64_t rows = 0;       // of the whole variable
  bool all = false;            // something other than a look-up reads it
  std::vector<SlotIndex> ids;  // int32, of any shape
};

/// Made by make_plan; an executor runs it. The device must outlive it.
struct Plan {
  struct KernelUse {
    std::unique_ptr<Kernel> kernel;
    const Node* node = nullptr;  // of `graph`
    std::size_t scratch_offset = 0, scratch_bytes = 0;
  };

  std::unique_ptr<Graph> graph;  // rewritten
  std::vector<KernelUse> kernels;
  std::vector<Storage> storages;
  std::vector<Slot> slots;
  std::vector<Instruction> instructions;
  /// So many instructions run before begin_step: they compute the ids of rows that the batch reads.
  /// No other instruction writes the memory that they write, so that they can run for the next
  /// batch while what this step has computed is still read.
  std::size_t prologue = 0;
  std::size_t arena_bytes = 0, input_bytes = 0;
  std::map<std::string, SlotIndex, std::less<>> inputs;  // all of the graph that was asked for
  std::vector<SlotIndex> fetches;
  SlotIndex loss = -1, global_norm = -1;  // −1: none
  float clip_norm = 0;                    // 0: no clipping
  PlanBinding binding;
  std::vector<RowReads> row_reads;

  bool clipped() const { return global_norm >= 0; }
};

/// Rewrites the graph, schedules, lays out memory, makes kernels. Throws kNotFound when `specs`
/// lacks a variable of the graph, kInvalidArgument when they disagree on one, or when the rows that
/// a batch reads of a sparse variable depend on a variable.
std::unique_ptr<Plan> make_plan(const PlanRequest& request, std::span<const VariableSpec> specs,
                                Device& device);

/// The store's list for several graphs: every variable once, by name; the training that updates it
/// gives rule, weight decay and sparseness. Throws kInvalidArgument when graphs disagree on one, or
/// two trainings update it, naming it.
std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                         std::span<const Training> trainings);
/// The same with one training, or none: null.
inline std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                                const Training* training) {
  return variable_specs(graphs, std::span(training, training != nullptr ? 1 : 0));
}

}  // namespace paceline
