// The list of a strategy's options: their flags, what these mean, and which strategies have them.
// Flags, --help, files, what workers agree on, reports and predictions read and write options by
// it.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "params/strategy/strategy_kind.h"

namespace paceline {

struct WholeOption {
  int Strategy::*value;
  int least, most;             // that a user may give
  std::string_view zero = "";  // the word for 0, which stands for what the strategy chooses
};

struct RateOption {
  float Strategy::*value;
  bool below_one = false;  // from zero; otherwise it is above zero
};

struct WordOption {
  std::vector<std::string> words;
  int (*get)(const Strategy& strategy);  // the index of its word
  void (*set)(Strategy& strategy, int word);
};

struct StrategyField {
  const char* flag;
  const char* argument;  // as --help shows it
  const char* help;
  /// The words that refuse the flag for a strategy without the option: "needs …".
  const char* needs;
  bool (*traits_have_it)(const StrategyKind& kind, const Strategy& options);
  std::variant<WholeOption, RateOption, WordOption> value;
  bool always_told = false;  // whoever is told of the strategy is told the value, too

  /// True for a strategy that has the option, and leaves it to the user.
  bool is_of(const StrategyKind& kind, const Strategy& options) const;
  /// The value, as its flag takes it.
  std::string text(const Strategy& strategy) const;
  /// The value as workers compare it: with the word for what the strategy chooses.
  std::string agreed_text(const Strategy& strategy) const;
  bool is_usual(const Strategy& strategy) const { return text(strategy) == text(Strategy()); }
};

std::span<const StrategyField> strategy_fields();

/// The strategy of this name with the options that `flags` give, as reports keep them. What cannot
/// be read stays as it is by default.
Strategy strategy_of(std::string_view name,
                     std::span<const std::pair<std::string, std::string>> flags);
/// The flags of the options that the strategy has, unless they are as usual: " --late fold".
std::string option_flags(const StrategyKind& kind, const Strategy& strategy);

}  // namespace paceline
