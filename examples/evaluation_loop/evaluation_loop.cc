// A training loop in the program itself, with validation and early stopping. Run ./evaluation_loop,
// or ./evaluation_loop --ps 1 --workers 2; --help lists the flags.
#include <paceline/paceline.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

using namespace paceline;

constexpr int kEvaluateEvery = 100;  // own steps
constexpr int kPatience = 5;         // evaluations without a lower loss before training stops

struct Model {
  Value x, y, loss;
};

Model build(Graph& graph) {
  const auto points = graph.open("points", 32);
  const Value x = graph.input("x", {points, 1}), y = graph.input("y", {points, 1});
  const Value prediction = dense(tanh(dense(x, 32, "hidden")), 1, "out");
  return {x, y, mean_squared_error(prediction, y)};
}

// Fills a batch with random points of a sine wave, with noise added.
void draw(std::mt19937_64& random, Feed& feed, const Model& model, std::int64_t points) {
  std::uniform_real_distribution<float> place(-2, 2);
  std::normal_distribution<float> noise(0, 0.1f);
  const auto x = feed.data<float>(model.x, {points, 1}), y = feed.data<float>(model.y, {points, 1});
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = place(random);
    y[i] = std::sin(2 * x[i]) + noise(random);
  }
}

int main(int argc, char** argv) {
  return run_program(argc, argv, [](const Cluster& cluster, RunOptions run) {
    if (!run.steps && !run.seconds) run.steps = 50000;
    Graph graph;
    const Model model = build(graph);
    Session session(minimize(model.loss, Adam{.learning_rate = 1e-2f}), cluster, run);
    std::mt19937_64 random(run.seed + std::uint64_t(session.cluster().task.index));
    float best = std::numeric_limits<float>::infinity();
    int worse = 0;
    while (worse < kPatience) {
      const auto made = session.step([&](Feed& feed) { draw(random, feed, model, 32); });
      // There is no step when --steps or --seconds are reached, or the chief has ended training.
      if (!made) return;
      if (!session.cluster().is_chief() || made->step % kEvaluateEvery != 0) continue;
      std::mt19937_64 same(0);  // every evaluation sees the same points
      const auto feed_validation = [&](Feed& feed) { draw(same, feed, model, 512); };
      const float loss = session.evaluate(model.loss, feed_validation).item<float>();
      session.summarise("loss/valid", loss);
      worse = loss < best ? 0 : worse + 1;
      best = std::min(best, loss);
      session.print("step " + std::to_string(made->step) + ": validation loss " +
                    std::to_string(loss) + ", best " + std::to_string(best));
    }
    session.print("stops: the validation loss fell in none of " + std::to_string(kPatience) +
                  " evaluations");
    session.stop_all();
    if (!run.keep_best) return;  // --out DIR --keep-best loss/valid
    session.begin_evaluation(run.out + ":best");
    std::mt19937_64 same(0);
    const auto feed = [&](Feed& to) { draw(same, to, model, 512); };
    const float loss = session.evaluate(model.loss, feed).item<float>();
    session.print("the best checkpoint: validation loss " + std::to_string(loss));
  });
}
