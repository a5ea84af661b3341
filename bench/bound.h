// The least that a step can take: its FLOPs, its memory traffic and its bytes on links, each at the
// rate that was measured for this machine. All of it follows from the graph.
#pragma once

#include <vector>

#include "bench/roof.h"
#include "exec/plan.h"
#include "models/model.h"

namespace paceline::bench {

/// What one step of one worker has to do.
struct StepWork {
  std::vector<Cost> ops;      // of the rewritten graph, in order
  double rule_bytes = 0;      // variables, slots and gradients that updates read and write
  double link_bytes_in = 0;   // values that a worker needs anew in each step
  double link_bytes_out = 0;  // its contributions
  std::vector<VariableSpec> specs;
  std::vector<double> bytes_in, bytes_out;  // of link_bytes, by variable
  // Bytes that one process holds.
  double variables = 0, slots = 0, gradients = 0, activations = 0;

  double flops() const;
  double memory() const { return variables + slots + gradients + activations; }
};

/// Bytes that a rule reads and writes per element of the variable: value and slots both ways (a
/// value that is only assigned one way), the gradient once.
double rule_bytes_per_element(const Rule& rule);

/// Sparse variables count with as many rows as a batch can name.
/// `rewrite`: what the plan is made with.
StepWork step_work(const models::StepGraph& step, const RewriteOptions& rewrite = {});

/// Seconds.
struct Bound {
  double ops = 0, rules = 0, link = 0;
  double total() const { return ops + rules + link; }
};

/// An op takes the longer of its FLOPs and its bytes, the latter only when they are more than the
/// cache holds; ops, rules and the link follow one another, for on one host all of them need the
/// same cores.
Bound bound_of(const StepWork& work, const Roof& roof);

}  // namespace paceline::bench
