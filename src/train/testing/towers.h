// For tests of sessions with towers.
#pragma once

#include <vector>

#include "paceline/cluster.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "train/testing/quiet.h"

namespace paceline {

// Returns a cluster with towers of one thread each. There may be more `naive` devices than the
// machine has cores.
inline Cluster with_towers(int towers, Cluster cluster = {}) {
  cluster.device.kind = "naive";
  cluster.threads = towers;
  cluster.towers = towers;
  return cluster;
}

// A model with a state of its own on each device, and random numbers.
class StateModel {
 public:
  StateModel() {
    x = graph.input("x", {1});
    const Value state = graph.local("state", {1});
    next = graph.named("next", add(scale(state, 2), x));
    graph.assign(state, next);
    noise = graph.named(
        "noise",
        dropout(graph.constant(Tensor::of<float>({64}, std::vector<float>(64, 1.0f))), 0.5f));
    loss = reduce_sum(square(sub(mul(graph.variable("w", {1}), x), next)));
  }
  Training training() { return minimize(loss, Sgd{0.001f}); }

  Graph graph;
  Value x, next, noise, loss;
};

}  // namespace paceline
