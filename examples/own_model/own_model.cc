// A model of one's own: ./own_model, or ./own_model --ps 1 --workers 2; --help lists the flags.
#include "own_op.h"
using namespace paceline;

int main(int argc, char** argv) {
  return run_program(argc, argv, [](const Cluster& cluster, RunOptions run) {
    if (!run.steps && !run.seconds) run.steps = 500;
    const OpRegistry ops = ops_with_swish();
    Graph graph(ops);
    Value x = graph.input("x", {128, 64}), y = graph.input("y", {128, 64});
    Value h = swish(dense(x, 512, "layer1"));
    Value loss = mean_squared_error(dense(h, 64, "layer2"), y);
    Session session(minimize(loss, Adam{.learning_rate = 1e-3f}), cluster, run);
    session.add(Progress());
    session.run([&](Feed& feed) {
      std::span<float> from = feed.normal(x).data<float>(x), to = feed.data<float>(y);
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::abs(from[i]);
    });
  });
}
