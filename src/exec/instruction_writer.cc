#include "exec/instruction_writer.h"

#include <map>
#include <span>
#include <vector>

namespace paceline {
namespace {

using Kind = Instruction::Kind;

// Events by position; those of one position are in the order of the schedule.
template <typename T>
using Events = std::map<int, std::vector<const T*>>;

template <typename T>
std::span<const T* const> events_at(const Events<T>& events, int position) {
  const auto found = events.find(position);
  return found == events.end() ? std::span<const T* const>() : found->second;
}

class InstructionWriter {
 public:
  InstructionWriter(const StepSchedule& step, const ValueMemory& memory, Plan& plan)
      : step_(step), memory_(memory), plan_(plan) {
    for (const PlacedUpdate& update : step.updates) {
      settled_[update.settled].push_back(&update);
      written_[update.written_by].push_back(&update);
    }
    for (const VariableReads& read : step.reads) {
      const int storage = memory.storage_of(read.node->output(0));
      first_reads_[memory.life(storage).first_read].push_back(&read);
    }
  }

  // Contributions that are settled at the end wait for the copies there, which may read variables.
  void write() {
    const int end = memory_.end(), prologue = int(step_.order.prologue);
    for (int position = 0; position < end; ++position) {
      if (position == prologue) plan_.prologue = plan_.instructions.size();
      write_contribution_copies(position);
      write_ready(position);
      write_needs(position);
      write_node(position);
    }
    if (end == prologue) plan_.prologue = plan_.instructions.size();
    write_needs(end);
    for (const PlannedCopy& copy : step_.last_copies) write_copy(copy);
    write_contribution_copies(end);
    for (const PlannedCopy& copy : step_.assignments) write_copy(copy);
    write_ready(end);
  }

 private:
  void write_contribution_copies(int position) {
    for (const PlacedUpdate* update : events_at(settled_, position)) {
      if (update->written_by >= 0) continue;
      write_place(*update);
      write_copy({memory_.slot(update->root.written()), update->place});
    }
  }

  void write_ready(int position) {
    for (const PlacedUpdate* update : events_at(settled_, position)) {
      Instruction ready{Kind::kReady, update->root.variable, -1, {}, {}};
      if (update->root.sparse()) {
        ready.inputs = {memory_.slot(update->root.ids), memory_.slot(update->root.count)};
      }
      plan_.instructions.push_back(std::move(ready));
    }
  }

  void write_needs(int position) {
    for (const VariableReads* read : events_at(first_reads_, position)) {
      const Value variable = read->node->output(0);
      plan_.instructions.push_back({Kind::kNeed, read->variable, -1, {}, {memory_.slot(variable)}});
    }
  }

  void write_node(int position) {
    const Node& node = *step_.order.nodes[std::size_t(position)];
    Instruction run{Kind::kRun, -1, position, {}, {}};
    for (const PlacedUpdate* update : events_at(written_, position)) {
      write_place(*update);
      run.streamed = update->streamed;
      run.lends = update->lends;
      if (run.lends) run.variable = update->root.variable;
    }
    for (const Value& input : node.inputs()) run.inputs.push_back(memory_.slot(input));
    for (int i = 0; i < int(node.outputs().size()); ++i) {
      run.outputs.push_back(memory_.slot(node.output(i)));
    }
    plan_.instructions.push_back(std::move(run));
  }

  void write_place(const PlacedUpdate& update) {
    plan_.instructions.push_back(
        {Kind::kPlace, update.root.variable, -1, {}, {update.place}, update.streamed});
  }

  void write_copy(const PlannedCopy& copy) {
    plan_.instructions.push_back({Kind::kCopy, -1, -1, {copy.from}, {copy.to}});
  }

  const StepSchedule& step_;
  const ValueMemory& memory_;
  Plan& plan_;
  Events<PlacedUpdate> settled_, written_;
  Events<VariableReads> first_reads_;
};

}  // namespace

void write_instructions(const StepSchedule& step, const ValueMemory& memory, Plan& plan) {
  InstructionWriter(step, memory, plan).write();
}

}  // namespace paceline
