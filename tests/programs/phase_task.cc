// phase_task PHASE [flags of a cluster]: a task that proceeds to PHASE (initialising or leaving),
// prints so, and stays there until the job ends or a peer is lost. For the tests of faults.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "paceline/error.h"
#include "paceline/program.h"
#include "params/worker/ps_store.h"

namespace paceline {
namespace {

std::vector<VariableSpec> one_variable() {
  VariableSpec variable;
  variable.name = std::string("w");
  variable.shape = {8, 8};
  return {variable};
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void stay(PsStore& store, const std::string& phase) {
  say("in phase " + phase);
  store.wait_all_done(Deadline::after(std::chrono::minutes(5)));
}

void work(const std::string& phase, const Cluster& cluster) {
  PsStoreOptions options;
  options.spec = cluster.spec;
  options.task = cluster.task;
  options.cluster_id = cluster.cluster_id;
  options.link = cluster.links.kind;
  options.security = cluster.links.security;
  options.join_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(cluster.links.join_timeout_s));
  options.reconnect_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(cluster.links.reconnect_timeout_s));
  options.say = say;
  const auto store = PsStore::join(options, one_variable());
  // Only the chief could go on, so it stays here before it initialises.
  if (phase == "initialising" && cluster.is_chief()) return stay(*store, phase);
  if (phase == "initialising") {
    say("in phase initialising");
    return store->wait_initialised();
  }
  if (cluster.is_chief()) {
    store->write({{{.variable = 0, .value = Tensor(DType::kFloat32, {8, 8}), .slots = {}}}}, 0);
  }
  store->wait_initialised();
  // The chief is done, and waits for the other workers, which are never done.
  if (cluster.is_chief()) store->set_done();
  stay(*store, phase);
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  const std::string phase = argc > 1 ? argv[1] : "";
  return paceline::run_program(argc - 1, argv + 1,
                               [&](const paceline::Cluster& cluster, const paceline::RunOptions&) {
                                 paceline::work(phase, cluster);
                               });
}
