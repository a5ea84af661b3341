// Update rules (optimizers). A rule says how a contribution changes a variable and its slots. The
// rule is applied where the variable is kept: in this process or on a parameter server.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// The kinds of rules. The wire and checkpoints use the same numbers.
enum class RuleKind : std::uint8_t {
  kSgd = 0,               // Sgd
  kMomentum = 1,          // Momentum
  kAdam = 2,              // Adam
  kAdagrad = 3,           // Adagrad
  kRmsprop = 4,           // Rmsprop
  kFtrl = 5,              // Ftrl
  kEma = 6,               // Ema
  kAdd = 7,               // Add
  kAssign = 8,            // Assign
  kAdamW = 9,             // AdamW
  kCustom = 10,           // CustomRule
  kDelayedNesterov = 11,  // DelayedNesterov
};

/// w ← w − lr·g.
struct Sgd {
  float learning_rate = 0.01f;  // lr
};
/// m ← momentum·m + g; w ← w − lr·m, with Nesterov w ← w − lr·(g + momentum·m)
/// (Sutskever et al., ICML 2013, in TensorFlow's form).
struct Momentum {
  float learning_rate = 0.01f;  // lr
  float momentum = 0.9f;        // the factor on the old m
  bool nesterov = false;        // true: Nesterov's form
};
/// Nesterov's momentum for changes that arrive one by one from `period` workers (Liu et al., arXiv
/// 2401.09135, with c = 0): g ← g / period, p ← p + g; every period-th contribution makes m ←
/// momentum·m + p, p ← 0 and w ← w − lr·(g + momentum·m), all others w ← w − lr·g. Contributions of
/// several workers may arrive in any order; each enters the momentum once.
struct DelayedNesterov {
  float learning_rate = 0.7f;  // lr
  float momentum = 0.9f;       // the factor on the old m
  int period = 1;              // 1: as Momentum with Nesterov; at most 2²⁴
};
/// Kingma & Ba, arXiv 1412.6980, in the efficient form at the end of its section 2:
/// lr_t = lr·√(1 − β2ᵗ) / (1 − β1ᵗ), w ← w − lr_t·m / (√v + ε).
struct Adam {
  float learning_rate = 1e-3f;  // lr
  float beta1 = 0.9f;           // β1, the decay of the first moment m
  float beta2 = 0.999f;         // β2, the decay of the second moment v
  float epsilon = 1e-8f;        // ε
};
/// Adam with decoupled weight decay (Loshchilov & Hutter, arXiv 1711.05101): w ← (1 − lr·λ)·w, then
/// as Adam. Unlike VariableGroup::weight_decay, λ adds nothing to the gradient, its norm or the
/// loss. Only the updated rows of a sparse variable decay.
struct AdamW {
  float learning_rate = 1e-3f;  // lr
  float beta1 = 0.9f;           // β1, the decay of the first moment m
  float beta2 = 0.999f;         // β2, the decay of the second moment v
  float epsilon = 1e-8f;        // ε
  float weight_decay = 0.01f;   // λ
};
/// a ← a + g²; w ← w − lr·g/(√a + ε) (Duchi et al., JMLR 12, 2011).
struct Adagrad {
  float learning_rate = 0.01f;       // lr
  float initial_accumulator = 0.1f;  // the initial value of a
  float epsilon = 1e-7f;             // ε
};
/// s ← decay·s + (1 − decay)·g²; m ← momentum·m + lr·g/√(s + ε); w ← w − m (Tieleman & Hinton
/// 2012).
struct Rmsprop {
  float learning_rate = 1e-3f;  // lr
  float decay = 0.9f;           // the part of s that stays
  float momentum = 0.0f;        // the part of m that stays
  float epsilon = 1e-10f;       // ε
};
/// FTRL-proximal with the learning-rate power −1/2 (McMahan et al., KDD 2013, algorithm 1).
struct Ftrl {
  float learning_rate = 0.01f;       // α
  float l1 = 0.0f;                   // λ1, of Σ|w|
  float l2 = 0.0f;                   // λ2, of Σw²
  float initial_accumulator = 0.1f;  // the initial value of n, the sum of squares
};
/// w ← decay·w + (1 − decay)·g. This rule keeps batch-norm statistics (Ioffe & Szegedy, arXiv
/// 1502.03167, section 3.1), and averages of variables as in Polyak & Juditsky (SIAM J. Control and
/// Optimization 30, 1992).
struct Ema {
  float decay = 0.99f;  // the part of w that stays
};
/// w ← w + g.
struct Add {};
/// w ← g.
struct Assign {};

/// A part of the optimizer state of a variable. A slot is as large as the variable, or a single
/// value (Adam's t).
struct SlotSpec {
  std::string name;     // "m", "v", "t", …
  bool scalar = false;  // one value, however large the variable is
  float initial = 0;    // the initial value of each element
};

/// The terms that a CustomRule may use. They are values of a graph that serves this rule alone.
struct RuleTerms {
  Value value;               // w
  Value gradient;            // g, after clipping and weight decay
  std::vector<Value> slots;  // as large as w, in the order of CustomRule::slots
  Value learning_rate;       // a scalar, with the schedule's factor
  Value count;               // a scalar: 1 for the first contribution, then 2, …
};
/// The result of a CustomRule: what w and each slot become.
struct RuleUpdate {
  Value value;               // the new w
  std::vector<Value> slots;  // the new slots, in their order
};
/// A rule of your own, written with the element-wise ops of ops.h. The rule is sent to the task
/// that keeps the variable, so any ps can apply it, `paceline server` included. Scalar terms are
/// computed once for each contribution, in float64. For example Lion (Chen et al., arXiv
/// 2302.06675):
///
///     CustomRule{.name = "lion", .slots = {{"m"}}, .update = [](const RuleTerms& r) {
///       const Value m = r.slots[0], direction = sign(0.9 * m + 0.1 * r.gradient);
///       return RuleUpdate{r.value - r.learning_rate * direction, {0.99 * m + 0.01 * r.gradient}};
///     }}
///
/// With `whole`, the rule sees the variable as one matrix: its rows are dimension 0, its columns
/// all other dimensions. The rule may then also use matmul of two matrices and reduce_sum over all
/// elements. `update` is called with values of an example size whose two dimensions differ; the
/// terms that it returns must be right for every size. A variable with such a rule is never split
/// over ps tasks and cannot be updated by rows; a contribution is applied when all of it has
/// arrived. Muon (Jordan et al. 2024) is in examples/coming_from.
struct CustomRule {
  /// The name: lower-case letters, digits and "_", at most 32 of them, and not the name of another
  /// kind of rule. Checkpoints compare it.
  std::string name;
  float learning_rate = 0.01f;       // before schedules
  std::vector<SlotSpec> slots = {};  // at most kMostSlots, none of them scalar
  /// Returns the new value and slots as terms. The function is called once, when the Rule is made.
  std::function<RuleUpdate(const RuleTerms&)> update;
  bool whole = false;  // true: the rule needs the whole variable

  static constexpr std::size_t kMostSlots = 3;  // the most slots that are as large as the variable
  /// The most element-wise operations. A rule may also have this number of operations on scalars.
  static constexpr std::size_t kMostSteps = 64;
};

/// The memory of a variable and of its slots, which a CodeRule changes. Nobody else reads or writes
/// this memory during the call.
struct CodeRuleCall {
  float* value;                   // w, row-major
  std::span<float* const> slots;  // each as long as the value, in the order of CodeRule::slots
  const float* gradient;          // after clipping and weight decay
  std::int64_t elements;          // the number in value, gradient and each slot
  float learning_rate;            // with the schedule's factor
  std::int64_t count;             // 1 for the first contribution, then 2, …
};
/// A rule that the program computes by its own code, such as another framework's optimizer, for a
/// whole variable at a time. The code stays in its process. So only strategies whose workers apply
/// rules accept a CodeRule: one process, `allreduce` and `local_sgd`. All workers must have the
/// same code. Slots and count are kept, handed to workers that join and saved like those of any
/// rule.
struct CodeRule {
  std::string name;                  // as that of CustomRule
  float learning_rate = 0.01f;       // before schedules
  std::vector<SlotSpec> slots = {};  // at most CustomRule::kMostSlots, none of them scalar
  /// Changes value and slots. The thread that applies rules calls this function for one variable
  /// after the other. An exception of the function ends the session.
  std::function<void(const CodeRuleCall&)> apply;
};

struct RuleProgram;

/// Any of the rules above, with its numbers. Rules are cheap to copy, and are sent to the shards of
/// the parameter servers. The constructors throw kInvalidArgument, naming the number and its range,
/// when a number is out of its range: a decay or a momentum is from 0 to 1 (Adam's are below 1),
/// all other numbers are finite and not negative.
class Rule {
 public:
  static constexpr std::size_t kNumbers = 4;  // the most numbers besides the learning rate

  Rule(const Sgd& rule);              // of kind kSgd
  Rule(const Momentum& rule);         // of kind kMomentum
  Rule(const Adam& rule);             // of kind kAdam
  Rule(const AdamW& rule);            // of kind kAdamW
  Rule(const Adagrad& rule);          // of kind kAdagrad
  Rule(const Rmsprop& rule);          // of kind kRmsprop
  Rule(const Ftrl& rule);             // of kind kFtrl
  Rule(const Ema& rule);              // of kind kEma
  Rule(const Add& rule);              // of kind kAdd
  Rule(const Assign& rule);           // of kind kAssign
  Rule(const DelayedNesterov& rule);  // of kind kDelayedNesterov
  /// A rule of kind kCustom. Throws kInvalidArgument, naming the rule, for wrong names or slots,
  /// for an op that a CustomRule may not use, and when the rule is too large.
  Rule(const CustomRule& rule);
  Rule(const CodeRule& rule);  // of kind kCustom; throws for wrong names or slots
  /// A rule from its parts, as they arrive over a link. Throws as the other constructors do, and
  /// for an unknown kind. `program` is the program of a rule of kind kCustom as text, and empty for
  /// others.
  Rule(std::uint8_t kind, float learning_rate, const std::array<float, kNumbers>& numbers,
       std::string_view program = {});

  /// The kind of rule.
  RuleKind kind() const { return kind_; }
  std::string_view name() const;  // "adam"
  /// The learning rate before schedules and factors; 0 for a rule without one.
  float learning_rate() const { return learning_rate_; }
  /// The other numbers, in the order of the struct's fields, a bool as 0 or 1.
  const std::array<float, kNumbers>& numbers() const { return numbers_; }
  /// True for a rule that needs the whole variable (CustomRule::whole).
  bool whole() const;
  /// True for a CodeRule, in any process.
  bool by_code() const;
  /// False for ema, add and assign, whose contributions are no gradients: they are not clipped, and
  /// weight decay does not apply.
  bool takes_gradient() const;
  /// The program of a rule of kind kCustom; null for others.
  const RuleProgram* program() const { return program_.get(); }
  /// The slots, in the order in which kernels take them.
  std::vector<SlotSpec> slots() const;
  /// True for a rule of the same kind, numbers and program.
  bool operator==(const Rule& other) const;

 private:
  void check() const;  // throws as the constructors do
  RuleKind kind_;
  float learning_rate_ = 0;
  std::array<float, kNumbers> numbers_{};
  std::shared_ptr<const RuleProgram> program_;
};

/// A factor as a function of the global step. The default is the factor 1. Where several schedules
/// apply, their factors are multiplied.
class Schedule {
 public:
  Schedule() = default;
  /// A schedule by any function of the global step. One thread at a time calls the function.
  explicit Schedule(std::function<double(std::int64_t step)> factor) : factor_(std::move(factor)) {}

  /// A schedule with the same factor in every step.
  static Schedule constant(double factor);
  /// rate^(step / decay_steps) (Szegedy et al., arXiv 1512.00567, section 8: 0.94 in 2 epochs).
  static Schedule exponential(double rate, std::int64_t decay_steps);
  /// rate^⌊step / decay_steps⌋ (Szegedy et al., arXiv 1409.4842, section 6: 0.96 every 8 epochs).
  static Schedule staircase(double rate, std::int64_t decay_steps);
  /// factors[i] for steps in [boundaries[i−1], boundaries[i]). There must be one factor more than
  /// boundaries (He et al., arXiv 1512.03385, section 4.2: a tenth from step 32,000 and again from
  /// 48,000).
  static Schedule piecewise(std::vector<std::int64_t> boundaries, std::vector<double> factors);
  /// (1 − end)·(1 − step/decay_steps)^power + end; `end` from decay_steps on
  /// (the "poly" policy of Chen et al., arXiv 1606.00915, whose `end` is 0).
  static Schedule polynomial(std::int64_t decay_steps, double end, double power);
  /// (1 − end)·½(1 + cos(π·step/decay_steps)) + end (Loshchilov & Hutter, arXiv 1608.03983).
  static Schedule cosine(std::int64_t decay_steps, double end = 0);
  /// (step + 1) / warm_up_steps for the first warm_up_steps steps, then after.at(step −
  /// warm_up_steps) (the gradual warm-up of Goyal et al., arXiv 1706.02677, section 2.2).
  static Schedule warm_up(std::int64_t warm_up_steps, Schedule after);

  /// The factor at a global step.
  double at(std::int64_t step) const { return factor_ ? factor_(step) : 1.0; }

 private:
  std::function<double(std::int64_t)> factor_;
};

}  // namespace paceline
