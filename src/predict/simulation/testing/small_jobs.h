// For tests: small jobs in virtual time.
#pragma once

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// A step of 10 ms with two dense variables of 4 MB each. The first variable is needed first and
/// ready last.
inline SimulatedStep two_layers() {
  SimulatedStep step;
  for (const char* name : {"one/w", "two/w"}) {
    step.specs.push_back({.name = name, .shape = {1024, 1024}});
    step.variables.push_back({.read = true, .updated = true, .rule_bytes = 12.0 * 1024 * 1024});
  }
  step.need_order = {0, 1};
  using Kind = StepAction::Kind;
  step.actions = {{Kind::kNeed, 0},       {Kind::kRun, -1, 2.5e-3}, {Kind::kNeed, 1},
                  {Kind::kRun, -1, 5e-3}, {Kind::kReady, 1},        {Kind::kRun, -1, 2.5e-3},
                  {Kind::kReady, 0}};
  return step;
}

/// A step with a dense variable and a table of 40 MB, of which it reads 64 rows.
inline SimulatedStep with_a_large_table() {
  SimulatedStep step = two_layers();
  step.specs[0].shape = {10240, 1024};
  step.specs[0].sparse = true;
  step.variables[0].most_rows = 64;
  step.variables[0].rule_bytes = 3 * 64 * 4096.0;
  return step;
}

/// Puts every task on a host of its own.
inline SimulatedCluster hosts(int ps, int workers, double bytes_per_s) {
  SimulatedCluster cluster;
  for (int i = 0; i < ps + workers; ++i) {
    cluster.machines.push_back({.cores = 4, .bytes_per_s = 100e9});
    cluster.hosts.push_back({i, bytes_per_s, 20e-6});
    (i < ps ? cluster.ps : cluster.workers).push_back(i);
  }
  return cluster;
}

inline SimulatedCluster one_host(int ps, int workers) {
  SimulatedCluster cluster{.machines = {{.cores = 16, .bytes_per_s = 100e9}}, .hosts = {{}}};
  cluster.ps.assign(std::size_t(ps), 0);
  cluster.workers.assign(std::size_t(workers), 0);
  return cluster;
}

inline TransportCosts free_of_cost() {
  return {.send_s_per_byte = 0,
          .receive_s_per_byte = 0,
          .frame_s = 0,
          .shared_frame_s = 0,
          .hand_over_s = 0,
          .wake_s = 0,
          .shared_wake_s = 0,
          .step_s = 0};
}

}  // namespace paceline
