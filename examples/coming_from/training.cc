// Loops, evaluations, data and checkpoints.
#include <limits>

#include "pieces.h"
using namespace paceline;
using namespace std::chrono_literals;

void train_in_a_loop(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{.learning_rate = 1e-3f}), cluster, run);
  session.add(Progress());
  session.run(noise(model));  // until --steps or --seconds
}

void train_step_by_step(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{}), cluster, run);
  std::vector<double> losses;
  while (const std::optional<StepResult> made = session.step(noise(model))) {
    losses.push_back(made->loss);
  }
}

void evaluate_beside_training(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, graph.open("rows", 32));  // usually 32
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
  const float loss = session.evaluate(model.loss, noise(model, 256)).item<float>();
  session.print("validation loss " + std::to_string(loss));
}

// Numbers to learn from, as they would come from a file.
Tensor numbers(std::int64_t rows, bool absolute) {
  Tensor tensor(DType::kFloat32, {rows, 4});
  const auto data = tensor.data<float>();
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = float(std::int64_t(i * 37 % 201) - 100) / 100;
    if (absolute) data[i] = std::abs(data[i]);
  }
  return tensor;
}

void train_on_arrays(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{}), cluster, run);
  const Tensor x = numbers(1000, false), y = numbers(1000, true);
  ArrayBatches data({{model.x, x}, {model.y, y}},
                    {.part = session.cluster().task.index, .parts = session.cluster().workers()});
  while (data.epoch(session.position()) < 3 && session.run(data)) {  // an epoch each
  }
}

void read_on_another_thread(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(prefetch(noise(model), 4));  // up to 4 batches ahead
}

void save_and_resume(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  run.out = "coming-from";  // --out coming-from
  run.save_every = 10;      // --save-every 10; also 60s
  run.overwrite = true;     // --overwrite
  {
    Session session(minimize(model.loss, Adam{}), cluster, run);
    session.run(noise(model));
  }
  run.overwrite = false;
  run.resume = true;  // --resume: variables, slots, step, place in the data
  if (run.steps) run.steps = *run.steps + 10;
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
}

void begin_with_saved_values(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  run.init_from = "coming-from/checkpoints";  // --init-from
  run.init_only = {"hidden/*"};               // --init-only: the other layer begins anew
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
}

// A hook of one's own sees every step.
class StopWhenLearnt : public Hook {
 public:
  bool after_step(Session&, const StepResult& result) override { return result.loss > 0.01; }
};

void stop_early(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, graph.open("rows", 32));
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.add(StopWhenLearnt());
  float best = std::numeric_limits<float>::infinity();
  session.add(EvaluateEvery(10, [&](Session& chief, const StepResult&) {
    const float loss = chief.evaluate(model.loss, noise(model, 256)).item<float>();
    const bool better = loss < best;
    best = std::min(best, loss);
    return better;  // false ends the training of all workers
  }));
  session.run(noise(model));
}

void accumulate_gradients(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Cluster with_four = cluster;
  with_four.train.accumulate = 4;  // --accumulate 4: the mean of four steps is one update
  Session session(minimize(model.loss, Adam{}), with_four, run);
  session.run(noise(model));
}
