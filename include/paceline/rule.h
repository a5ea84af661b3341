// Update rules (optimizers): what a contribution does to a variable and its slots. The same rule
// runs wherever the variable lives: in this process or on a parameter server.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/shape.h"

namespace paceline {

enum class RuleKind : std::uint8_t {
  kSgd = 0,
  kMomentum = 1,
  kAdam = 2,
  kAdagrad = 3,
  kRmsprop = 4,
  kFtrl = 5,
  kEma = 6,
  kAdd = 7,
  kAssign = 8,
};

/// w ← w − lr·g.
struct Sgd {
  float learning_rate = 0.01f;
};
/// m ← momentum·m + g; w ← w − lr·m, with Nesterov w ← w − lr·(g + momentum·m)
/// (Sutskever et al., ICML 2013, in TensorFlow's form).
struct Momentum {
  float learning_rate = 0.01f;
  float momentum = 0.9f;
  bool nesterov = false;
};
/// Kingma & Ba, arXiv 1412.6980, in the efficient form at the end of its section 2:
/// lr_t = lr·√(1 − β2ᵗ) / (1 − β1ᵗ), w ← w − lr_t·m / (√v + ε).
struct Adam {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
};
/// a ← a + g²; w ← w − lr·g/(√a + ε) (Duchi et al., JMLR 12, 2011).
struct Adagrad {
  float learning_rate = 0.01f;
  float initial_accumulator = 0.1f;
  float epsilon = 1e-7f;
};
/// s ← decay·s + (1 − decay)·g²; m ← momentum·m + lr·g/√(s + ε); w ← w − m (Tieleman & Hinton
/// 2012).
struct Rmsprop {
  float learning_rate = 1e-3f;
  float decay = 0.9f;
  float momentum = 0.0f;
  float epsilon = 1e-10f;
};
/// FTRL-proximal (McMahan et al., KDD 2013, algorithm 1), learning-rate power −1/2.
struct Ftrl {
  float learning_rate = 0.01f;
  float l1 = 0.0f;
  float l2 = 0.0f;
  float initial_accumulator = 0.1f;
};
/// w ← decay·w + (1 − decay)·g: how batch-norm statistics are kept (Ioffe & Szegedy, arXiv
/// 1502.03167, section 3.1), and averages of variables in the spirit of Polyak & Juditsky (SIAM J.
/// Control and Optimization 30, 1992).
struct Ema {
  float decay = 0.99f;
};
/// w ← w + g.
struct Add {};
/// w ← g.
struct Assign {};

/// Optimizer state of a variable: as large as the variable, or one value (Adam's t).
struct SlotSpec {
  std::string name;  // "m", "v", "t", …
  bool scalar = false;
  float initial = 0;
};

/// Any of the above with its numbers; copied freely and sent to the shards.
class Rule {
 public:
  static constexpr std::size_t kNumbers = 4;

  Rule(const Sgd& rule);
  Rule(const Momentum& rule);
  Rule(const Adam& rule);
  Rule(const Adagrad& rule);
  Rule(const Rmsprop& rule);
  Rule(const Ftrl& rule);
  Rule(const Ema& rule);
  Rule(const Add& rule);
  Rule(const Assign& rule);
  /// From its parts, as they come over a link. Throws kInvalidArgument on an unknown kind.
  Rule(std::uint8_t kind, float learning_rate, const std::array<float, kNumbers>& numbers);

  RuleKind kind() const { return kind_; }
  std::string_view name() const;  // "adam"
  float learning_rate() const { return learning_rate_; }
  /// In the order of the struct's fields after learning_rate, a bool as 0 or 1.
  const std::array<float, kNumbers>& numbers() const { return numbers_; }
  /// In the order in which kernels take them.
  std::vector<SlotSpec> slots() const;
  bool operator==(const Rule&) const = default;

 private:
  RuleKind kind_;
  float learning_rate_ = 0;
  std::array<float, kNumbers> numbers_{};
};

}  // namespace paceline
