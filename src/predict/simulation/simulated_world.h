// The state that the tasks of a simulated job share about variables that they keep together.
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
  /// `shared` are the variables as the tasks share them; its actions do not matter. Everything is
  /// borrowed.
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
  /// While a worker reads them to make a contribution that will count.
  bool others_change_values() const {
    return !in_rounds() || aggregation.late == LateContribution::kFold;
  }
  /// True when workers that share memory with its ps tasks read it there; sparse ones are taken to
  /// be. Values of others are sent to them.
  bool can_be_mapped(VariableId v) const { return mapped[std::size_t(v)]; }
  /// A worker that shares memory with a ps reads such a variable in a copy of its own.
  bool is_read_in_copy(VariableId v) const {
    return use(v).reread && num_workers() > 1 && others_change_values() && can_be_mapped(v);
  }
  /// The end of a step asks for the rows that the next one reads.
  bool asks_next_rows(VariableId v) const {
    return spec(v).sparse && !aggregation.outdates_answers();
  }
  /// The messages that the part of a piece at that offset stands for.
  int messages_of(const Piece& piece, std::size_t offset) const {
    return offset == 0 && piece.first_row == 0 ? use(piece.variable).tensors : 1;
  }
  /// The part of a variable's rows that are in the piece.
  double part_of(const Piece& piece) const;
  /// The number of rows of a sparse variable that a step names in the piece.
  std::int64_t rows_named(const Piece& piece) const;

  const SimulatedJob& job;
  const SimulatedStep& step;
  const AggregationSpec aggregation;
  const std::vector<Piece> pieces;
  const std::vector<bool> mapped;  // by variable: can_be_mapped()
  /// The variables to which each plan contributes; one plan does to all.
  std::vector<std::vector<VariableId>> plans;
  VirtualTime& time;
  Transport& transport;
  std::vector<std::unique_ptr<SimulatedPs>> ps;
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
};

}  // namespace paceline
