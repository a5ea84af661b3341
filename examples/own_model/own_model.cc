// A model of one's own: ./own_model, or ./own_model --ps 1 --workers 2; --help lists the flags.
#include "own_op.h"
using namespace paceline;

const auto kBatch = batch_setting(128);
const Setting<std::int64_t> kHidden = {
    .name = "hidden", .value = 512, .help = "Units of the hidden layer", .least = 1};
const Setting<double> kRate = {
    .name = "learning_rate", .value = 1e-3, .help = "Adam's learning rate", .least = 0, .most = 1};
const ProgramOptions kOptions = {.about = "Learns the absolute value from noise.",
                                 .settings = {kBatch, kHidden, kRate}};

int main(int argc, char** argv) {
  return run_program(
      argc, argv, kOptions, [](const Cluster& cluster, RunOptions run, const Settings& settings) {
        if (!run.steps && !run.seconds) run.steps = 500;
        const std::int64_t batch = settings[kBatch];
        const OpRegistry ops = ops_with_swish();
        Graph graph(ops);
        Value x = graph.input("x", {batch, 64}), y = graph.input("y", {batch, 64});
        Value h = swish(dense(x, settings[kHidden], "layer1"));
        Value loss = mean_squared_error(dense(h, 64, "layer2"), y);
        const Adam rule{.learning_rate = float(settings[kRate])};
        Session session(minimize(loss, rule), cluster, run);
        session.add(Progress());
        session.run([&](Feed& feed) {
          std::span<float> from = feed.normal(x).data<float>(x), to = feed.data<float>(y);
          for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::abs(from[i]);
        });
      });
}
