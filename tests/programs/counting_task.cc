// counting_task [flags of a cluster]: trains so that every contribution subtracts exactly 1 from
// every element of every variable. So the values tell how many contributions were applied. It
// trains until the file $PACELINE_STOP_FILE exists, then prints its steps and the values. For
// scripts/stress_workers.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "paceline/ops.h"
#include "paceline/program.h"
#include "paceline/session.h"

namespace paceline {
namespace {

constexpr std::int64_t kSayEvery = 20;  // own steps

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Returns the dense variables: a large one, which has several chunks and is split over ps tasks,
/// and two small ones.
std::vector<Value> variables(Graph& graph) {
  const Initializer zero = Initializer::zeros();
  return {graph.variable("large", {400, 700}, zero), graph.variable("small", {7}, zero),
          graph.variable("other", {90, 11}, zero)};
}

void train(const Cluster& cluster, const RunOptions& run) {
  const char* const stop_file = std::getenv("PACELINE_STOP_FILE");
  Graph graph;
  Value loss = graph.constant(Tensor::of<float>({}, {0}));
  for (const Value& variable : variables(graph)) loss = add(loss, reduce_sum(variable));
  const Value rows = graph.variable("rows", {12, 5}, Initializer::zeros());
  std::vector<std::int32_t> all(12);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::int32_t(i);
  loss =
      add(loss,
          reduce_sum(embedding_lookup(rows, graph.constant(Tensor::of<std::int32_t>({12}, all)))));
  Session session(minimize(loss, Sgd{.learning_rate = 1}), cluster, run);
  session.run([&](Feed& feed) {
    if (feed.step() % kSayEvery == 0) say(fmt::format("at {}", session.last_step().global_step));
    if (stop_file != nullptr && access(stop_file, F_OK) == 0) feed.stop();
  });
  say(fmt::format("ended at {}", session.last_step().global_step));
  for (const std::string& name : session.variables().names()) {
    const Tensor value = session.variables().get(name);
    const auto [least, most] = std::ranges::minmax(value.data<float>());
    say(fmt::format("{} counts {} to {}", name, -most, -least));
  }
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) { return paceline::run_program(argc, argv, paceline::train); }
