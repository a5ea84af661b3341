#include "paceline/rule.h"

#include <fmt/format.h>

#include <limits>

#include "graph/rule_names.h"
#include "graph/rule_program.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// The range of a number of a rule.
struct NumberRange {
  std::string_view name;
  float most;
  bool below_most;  // `most` itself is refused
  float least = 0;
};

constexpr float kAnyNumber = std::numeric_limits<float>::max();
constexpr float kMostPeriod = float{1 << 24};  // a float holds each whole number up to it

// The ranges leave out 1 for Adam's decays, since its bias correction would divide by zero.
std::vector<NumberRange> ranges_of(RuleKind kind) {
  const NumberRange epsilon{"epsilon", kAnyNumber, false};
  const NumberRange accumulator{"initial_accumulator", kAnyNumber, false};
  const NumberRange decay{"decay", 1, false}, momentum{"momentum", 1, false};
  switch (kind) {
    case RuleKind::kMomentum:
      return {momentum};
    case RuleKind::kAdam:
      return {{"beta1", 1, true}, {"beta2", 1, true}, epsilon};
    case RuleKind::kAdamW:
      return {{"beta1", 1, true}, {"beta2", 1, true}, epsilon, {"weight_decay", kAnyNumber, false}};
    case RuleKind::kAdagrad:
      return {accumulator, epsilon};
    case RuleKind::kRmsprop:
      return {decay, momentum, epsilon};
    case RuleKind::kFtrl:
      return {{"l1", kAnyNumber, false}, {"l2", kAnyNumber, false}, accumulator};
    case RuleKind::kEma:
      return {decay};
    case RuleKind::kDelayedNesterov:
      return {momentum, {"period", kMostPeriod, false, 1}};
    case RuleKind::kSgd:
    case RuleKind::kAdd:
    case RuleKind::kAssign:
    case RuleKind::kCustom:
      break;
  }
  return {};
}

std::string range_text(const NumberRange& range) {
  if (range.most == kAnyNumber) return "must be a finite number from 0 on";
  if (range.below_most)
    return fmt::format("must be at least {} and below {}", range.least, range.most);
  return fmt::format("must be from {} to {}", range.least, range.most);
}

void check_number(const Rule& rule, const NumberRange& range, float number) {
  const bool fits =
      number >= range.least && (range.below_most ? number < range.most : number <= range.most);
  if (fits) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[rule] {}: {} = {}: {}", rule.name(),
                                                       range.name, number, range_text(range)));
}

// A rule that reads the count keeps the count in the slot "t", so checkpoints have it.
std::vector<SlotSpec> custom_slots(const RuleProgram& program) {
  std::vector<SlotSpec> slots = program.slots;
  if (program.reads_count()) slots.push_back({"t", true, 0});
  return slots;
}

RuleProgram program_of(const CodeRule& rule) {
  RuleProgram program;
  program.name = rule.name;
  program.slots = rule.slots;
  program.whole = program.by_code = true;
  program.code = rule.apply;
  for (std::size_t i = 0; i <= program.slots.size(); ++i) {
    program.results.push_back(RuleProgram::replaced(i));
  }
  program.complete();
  if (!program.code) program.refuse("it has no code");
  return program;
}

}  // namespace

void Rule::check() const {
  check_number(*this, {"learning_rate", kAnyNumber, false}, learning_rate_);
  const std::vector<NumberRange> ranges = ranges_of(kind_);
  for (std::size_t i = 0; i < ranges.size(); ++i) check_number(*this, ranges[i], numbers_[i]);
}

Rule::Rule(const Sgd& rule) : kind_(RuleKind::kSgd), learning_rate_(rule.learning_rate) { check(); }

Rule::Rule(const Momentum& rule)
    : kind_(RuleKind::kMomentum),
      learning_rate_(rule.learning_rate),
      numbers_{rule.momentum, rule.nesterov ? 1.0f : 0.0f} {
  check();
}

Rule::Rule(const Adam& rule)
    : kind_(RuleKind::kAdam),
      learning_rate_(rule.learning_rate),
      numbers_{rule.beta1, rule.beta2, rule.epsilon} {
  check();
}

Rule::Rule(const AdamW& rule)
    : kind_(RuleKind::kAdamW),
      learning_rate_(rule.learning_rate),
      numbers_{rule.beta1, rule.beta2, rule.epsilon, rule.weight_decay} {
  check();
}

Rule::Rule(const Adagrad& rule)
    : kind_(RuleKind::kAdagrad),
      learning_rate_(rule.learning_rate),
      numbers_{rule.initial_accumulator, rule.epsilon} {
  check();
}

Rule::Rule(const Rmsprop& rule)
    : kind_(RuleKind::kRmsprop),
      learning_rate_(rule.learning_rate),
      numbers_{rule.decay, rule.momentum, rule.epsilon} {
  check();
}

Rule::Rule(const Ftrl& rule)
    : kind_(RuleKind::kFtrl),
      learning_rate_(rule.learning_rate),
      numbers_{rule.l1, rule.l2, rule.initial_accumulator} {
  check();
}

Rule::Rule(const Ema& rule) : kind_(RuleKind::kEma), numbers_{rule.decay} { check(); }

Rule::Rule(const Add&) : kind_(RuleKind::kAdd) {}

Rule::Rule(const Assign&) : kind_(RuleKind::kAssign) {}

Rule::Rule(const DelayedNesterov& rule)
    : kind_(RuleKind::kDelayedNesterov),
      learning_rate_(rule.learning_rate),
      numbers_{rule.momentum, float(rule.period)} {
  check();
}

Rule::Rule(std::uint8_t kind, float learning_rate, const std::array<float, kNumbers>& numbers,
           std::string_view program)
    : kind_(RuleKind(kind)), learning_rate_(learning_rate), numbers_(numbers) {
  if (kind >= kRuleNames.size()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[rule] kind {} is unknown; 0 to {} are known", kind, kRuleNames.size() - 1));
  }
  if (kind_ == RuleKind::kCustom) {
    program_ = std::make_shared<const RuleProgram>(RuleProgram::parse(program));
  }
  check();
}

std::string_view Rule::name() const {
  return program_ != nullptr ? program_->name : kRuleNames[std::size_t(kind_)];
}

Rule::Rule(const CodeRule& rule)
    : kind_(RuleKind::kCustom),
      learning_rate_(rule.learning_rate),
      program_(std::make_shared<const RuleProgram>(program_of(rule))) {
  check();
}

bool Rule::whole() const { return program_ != nullptr && program_->whole; }

bool Rule::by_code() const { return program_ != nullptr && program_->by_code; }

bool Rule::operator==(const Rule& other) const {
  if ((program_ == nullptr) != (other.program_ == nullptr)) return false;
  return kind_ == other.kind_ && learning_rate_ == other.learning_rate_ &&
         numbers_ == other.numbers_ && (program_ == nullptr || *program_ == *other.program_);
}

bool Rule::takes_gradient() const {
  return kind_ != RuleKind::kEma && kind_ != RuleKind::kAdd && kind_ != RuleKind::kAssign;
}

std::vector<SlotSpec> Rule::slots() const {
  switch (kind_) {
    case RuleKind::kMomentum:
      return {{"m", false, 0}};
    case RuleKind::kAdam:
    case RuleKind::kAdamW:
      return {{"m", false, 0}, {"v", false, 0}, {"t", true, 0}};
    case RuleKind::kAdagrad:
      return {{"a", false, numbers_[0]}};
    case RuleKind::kRmsprop:
      return {{"s", false, 0}, {"m", false, 0}};
    case RuleKind::kFtrl:
      return {{"n", false, numbers_[2]}, {"z", false, 0}};
    case RuleKind::kDelayedNesterov:
      return {{"m", false, 0}, {"p", false, 0}, {"t", true, 0}};
    case RuleKind::kCustom:
      return custom_slots(*program_);
    case RuleKind::kSgd:
    case RuleKind::kEma:
    case RuleKind::kAdd:
    case RuleKind::kAssign:
      break;
  }
  return {};
}

}  // namespace paceline
