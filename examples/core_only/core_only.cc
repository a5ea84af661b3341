// Trains with the core library alone (paceline::core), without flags, pages and predictions. The
// program describes the job itself, and watches the run with its own observer.
#include <paceline/observer.h>
#include <paceline/ops.h>
#include <paceline/session.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

using namespace paceline;

// Prints a line about once a second, and one when the session ends.
class Watch : public SessionObserver {
 public:
  bool wants_progress() const override { return true; }
  void progressed(RunningSession& session) override {
    const StepResult& last = session.last_step();
    std::printf("step %lld: loss %g\n", (long long)last.global_step, last.loss);
  }
  void ended(RunningSession& session) override {
    std::printf("report: %zu bytes of JSON\n", session.report_text().size());
  }
};

int main() {
  constexpr std::int64_t kBatch = 64;
  Graph graph;
  const Value x = graph.input("x", {kBatch, 1}), y = graph.input("y", {kBatch, 1});
  const Value predicted = dense(tanh(dense(x, 16, "hidden")), 1, "output");

  RunOptions run;
  run.steps = 2000;
  run.observers.push_back([](const PlannedSession&) { return std::make_unique<Watch>(); });
  Cluster cluster;  // one process; `process`, `spec` and `task` would describe a larger job
  Session session(minimize(mean_squared_error(predicted, y), Adam{.learning_rate = 1e-2f}), cluster,
                  run);
  session.run([&](Feed& feed) {
    const auto from = feed.normal(x).data<float>(x), to = feed.data<float>(y);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::sin(from[i]);
  });
  std::printf("trained %lld steps to loss %g\n", (long long)session.last_step().step,
              session.last_step().loss);
}
