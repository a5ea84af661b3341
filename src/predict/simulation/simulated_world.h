// What all tasks of a simulated job have in common: the job, the step with the variables that the
// tasks share, the clock, the transport, and the tasks themselves.
#pragma once

#include <memory>
#include <vector>

#include "base/virtual_time.h"
#include "params/protocol/step_assembly.h"
#include "predict/simulation/simulated_job.h"
#include "predict/simulation/transport.h"

namespace paceline {

class SimulatedPs;
class SimulatedWorker;

struct SimulatedWorld {
  /// `shared` has the variables that the tasks share; its actions do not matter. Borrows all its
  /// arguments.
  SimulatedWorld(const SimulatedJob& job, const SimulatedStep& shared,
                 const AggregationSpec& aggregation, VirtualTime& time, Transport& transport);
  ~SimulatedWorld();
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;

  int num_ps() const { return int(job.cluster.ps.size()); }
  int num_workers() const { return int(job.cluster.workers.size()); }
  const VariableSpec& spec(VariableId v) const { return step.specs[std::size_t(v)]; }
  const StepVariable& use(VariableId v) const { return step.variables[std::size_t(v)]; }
  bool in_rounds() const { return aggregation.kind == AggregationKind::kRounds; }
  /// True if other workers may change the values while a worker computes a contribution from them,
  /// and this contribution still counts.
  bool others_change_values() const {
    return !in_rounds() || aggregation.late == LateContribution::kFold;
  }
  /// True if workers that share memory with the variable's ps tasks read the variable in that
  /// memory. The simulation assumes this of sparse variables. All other values are sent.
  bool can_be_mapped(VariableId v) const { return mapped[std::size_t(v)]; }
  /// True if a worker that shares memory with a ps reads the variable in a copy of its own.
  bool is_read_in_copy(VariableId v) const {
    return use(v).reread && num_workers() > 1 && others_change_values() && can_be_mapped(v);
  }
  /// True if the end of a step asks for the rows that the next step reads.
  bool asks_next_rows(VariableId v) const {
    return spec(v).sparse && !aggregation.outdates_answers();
  }
  /// Returns the number of messages that the piece's part at this offset stands for.
  int messages_of(const Piece& piece, std::size_t offset) const {
    return offset == 0 && piece.first_row == 0 ? use(piece.variable).tensors : 1;
  }
  /// Returns the part of a variable's rows that the piece holds.
  double part_of(const Piece& piece) const;
  /// Returns the number of a sparse variable's rows in the piece that a step names.
  std::int64_t rows_named(const Piece& piece) const;

  const SimulatedJob& job;
  const SimulatedStep& step;
  const AggregationSpec aggregation;
  const std::vector<Piece> pieces;
  const std::vector<bool> mapped;  // by variable: can_be_mapped()
  /// The variables to which each plan contributes; a single plan contributes to all.
  std::vector<std::vector<VariableId>> plans;
  VirtualTime& time;
  Transport& transport;
  std::vector<std::unique_ptr<SimulatedPs>> ps;
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
};

}  // namespace paceline
