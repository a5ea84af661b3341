// Uses a trained model without a session: computes the wave that examples/evaluation_loop has
// learned. First run ./evaluation_loop --out run --keep-best loss/valid, then ./trained_model
// run:best 0.5 1 1.5
#include <paceline/error.h>
#include <paceline/ops.h>
#include <paceline/predictor.h>

#include <cstdio>
#include <cstdlib>

using namespace paceline;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: trained_model RUN X…\n");
    return 2;
  }
  Graph graph;
  const Value x = graph.input("x", {graph.open("points"), 1});
  const Value y = dense(tanh(dense(x, 32, "hidden")), 1, "out");
  const Tensor points(DType::kFloat32, {argc - 2, 1});
  const auto at = points.data<float>();
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::strtof(argv[i + 2], nullptr);
  try {
    const Predictor predictor(graph, {y}, argv[1]);
    const Tensor wave = predictor.predict({{x, points}})[0];
    std::printf("step %lld\n", (long long)predictor.global_step());
    for (std::size_t i = 0; i < at.size(); ++i)
      std::printf("%g %.3f\n", at[i], wave.data<float>()[i]);
  } catch (const Error& error) {
    std::fprintf(stderr, "trained_model: %s\n", error.what());
    return 1;
  }
}
