// Optimisers and gradients.
#include "pieces.h"
using namespace paceline;

void schedule_the_learning_rate(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  const Schedule schedule = Schedule::warm_up(100, Schedule::cosine(10'000));
  Session session(minimize(model.loss, Adam{}, {.learning_rate = schedule}), cluster, run);
  session.run(noise(model));
}

void clip_gradients(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  const MinimizeOptions options{.clip_norm = 5, .clip_value = 0.1f};  // each alone, too
  Session session(minimize(model.loss, Sgd{.learning_rate = 0.1f}, options), cluster, run);
  session.run(noise(model));
}

void treat_layers_differently(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  const MinimizeOptions options{
      .groups = {{.prefix = "hidden/", .frozen = true},
                 {.prefix = "out/", .rule = AdamW{.weight_decay = 0.01f}}}};
  Session session(minimize(model.loss, Adam{}, options), cluster, run);
  session.run(noise(model));
}

void average_the_weights(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{}, {.average_decay = 0.99f}), cluster, run);
  session.run(noise(model));
  session.begin_evaluation(EvaluateWith::kAverages);
  session.evaluate(model.loss, noise(model));  // with the averages
}

Rule signs(float learning_rate) {
  return CustomRule{.name = "signs",
                    .learning_rate = learning_rate,
                    .slots = {{"m"}},
                    .update = [](const RuleTerms& r) {
                      const Value m = 0.9 * r.slots[0] + 0.1 * r.gradient;
                      return RuleUpdate{r.value - r.learning_rate * sign(m), {m}};
                    }};
}

void use_a_rule_of_ones_own(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, signs(1e-3f)), cluster, run);  // a ps applies it, too
  session.run(noise(model));
}

// Muon (Jordan et al. 2024) looks at a whole matrix: products of it make its momentum nearly
// orthogonal.
Rule muon(float learning_rate) {
  return CustomRule{.name = "muon",
                    .learning_rate = learning_rate,
                    .slots = {{"m"}},
                    .update =
                        [](const RuleTerms& r) {
                          const Value m = 0.95 * r.slots[0] + r.gradient;
                          const Value ahead = r.gradient + 0.95 * m;
                          Value x = ahead / (sqrt(reduce_sum(square(ahead))) + 1e-7);
                          for (int i = 0; i < 5; ++i) {
                            const Value a = matmul(x, x, false, true);
                            x = 3.4445 * x + matmul(2.0315 * matmul(a, a) - 4.775 * a, x);
                          }
                          return RuleUpdate{r.value - r.learning_rate * x, {m}};
                        },
                    .whole = true};
}

void use_a_rule_of_whole_matrices(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  const MinimizeOptions options{.groups = {{.prefix = "hidden/w", .rule = muon(0.02f)}}};
  Session session(minimize(model.loss, Adam{}, options), cluster, run);
  session.run(noise(model));
}

void differentiate(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  const Value by_x = gradients(model.loss, {model.x})[0];
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
  const Tensor slope = session.evaluate(by_x, noise(model));  // (32,4)
  session.print("the first of its slopes is " + std::to_string(slope.data<float>()[0]));
}
