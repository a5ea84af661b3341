// User-written rules for tests and benchmarks.
#pragma once

#include <cmath>

#include "paceline/ops.h"
#include "paceline/rule.h"

namespace paceline {

/// Adam, written as a CustomRule.
inline Rule written_adam(float learning_rate = 1e-3f) {
  return CustomRule{.name = "written_adam",
                    .learning_rate = learning_rate,
                    .slots = {{"m"}, {"v"}},
                    .update = [](const RuleTerms& r) {
                      const double beta1 = 0.9f, beta2 = 0.999f;
                      const Value m = beta1 * r.slots[0] + (1 - beta1) * r.gradient;
                      const Value v = beta2 * r.slots[1] + (1 - beta2) * square(r.gradient);
                      const auto power = [&](double base) { return exp(r.count * std::log(base)); };
                      const Value rate =
                          r.learning_rate * sqrt(1 - power(beta2)) / (1 - power(beta1));
                      return RuleUpdate{r.value - rate * m / (sqrt(v) + 1e-8), {m, v}};
                    }};
}

/// Lion (Chen et al., arXiv 2302.06675).
inline Rule lion(float learning_rate = 1e-4f) {
  return CustomRule{
      .name = "lion",
      .learning_rate = learning_rate,
      .slots = {{"m"}},
      .update = [](const RuleTerms& r) {
        const Value m = r.slots[0], direction = sign(0.9 * m + 0.1 * r.gradient);
        return RuleUpdate{r.value - r.learning_rate * direction, {0.99 * m + 0.01 * r.gradient}};
      }};
}

/// Muon: five steps of a Newton–Schulz iteration make a matrix's momentum nearly orthogonal (Jordan
/// et al. 2024, "Muon: An optimizer for hidden layers in neural networks").
inline Rule muon(float learning_rate = 0.02f) {
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

}  // namespace paceline
