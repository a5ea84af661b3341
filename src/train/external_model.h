// A model that other code computes, as a graph: what needs each variable and what makes each
// gradient are nodes whose kernels meet that code on a board.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "paceline/external_store.h"
#include "paceline/op.h"
#include "train/external_board.h"

namespace paceline {

/// A session trains it like any other graph. So plans, strategies, checkpoints, reports and
/// predictions know nothing of it.
class ExternalModel {
 public:
  /// Throws kInvalidArgument, naming the variable, for one that cannot be trained so.
  /// `threads` had the other code when it took the seconds that the variables tell.
  ExternalModel(std::shared_ptr<ExternalBoard> board, const Rule& rule,
                const MinimizeOptions& options, int threads = 1);
  ExternalModel(const ExternalModel&) = delete;
  ExternalModel& operator=(const ExternalModel&) = delete;

  const Training& training() const { return training_; }
  /// Fills the inputs of a step, which is open on the board from then on. Throws kInvalidArgument
  /// for rows that a variable does not have.
  void feed(Feed& feed, const std::vector<BatchRows>& rows) const;
  /// Throws the same as feed.
  void check(const std::vector<BatchRows>& rows) const;
  void set_learning_rate_factor(int variable, double factor);

 private:
  struct Read {
    Value variable;
    Value ids;    // those of the batch; of a variable that is read by rows
    Value value;  // as the other code reads it
  };

  OpRegistry ops(int threads);
  Read read_of(std::size_t variable);
  Value needs_in_order();
  std::vector<VariableUpdate> gradients(Value forward, std::vector<Value>& all);
  MinimizeOptions with_groups(MinimizeOptions options) const;

  const std::shared_ptr<ExternalBoard> board_;
  const std::shared_ptr<std::vector<std::atomic<double>>> factors_;  // of learning rates
  const OpRegistry ops_;
  Graph graph_;
  std::vector<Read> reads_;
  Training training_;
};

}  // namespace paceline
