// The list of the options of strategies: the flag of each option, its meaning, and the strategies
// that have it. Flags, --help, files, the workers' agreement, reports and predictions use this list
// to read and write options.
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
  int least, most;             // the least and most that a user may give
  std::string_view zero = "";  // the word for 0, which means that the strategy chooses
};

struct RateOption {
  float Strategy::*value;
  bool below_one = false;  // in [0, 1); otherwise above 0
};

struct WordOption {
  std::vector<std::string> words;
  int (*get)(const Strategy& strategy);  // returns the index of its word
  void (*set)(Strategy& strategy, int word);
};

struct StrategyField {
  const char* flag;
  const char* argument;  // as --help shows it
  const char* help;
  /// The reason why the flag is refused for a strategy without the option: "needs …".
  const char* needs;
  bool (*traits_have_it)(const StrategyKind& kind, const Strategy& options);
  std::variant<WholeOption, RateOption, WordOption> value;
  bool always_told = false;  // messages that name the strategy also name the value

  /// True for a strategy that has the option and leaves its value to the user.
  bool is_of(const StrategyKind& kind, const Strategy& options) const;
  /// The value, as its flag takes it.
  std::string text(const Strategy& strategy) const;
  /// The value as workers compare it. If the strategy chooses the value, this is the word for that
  /// choice.
  std::string agreed_text(const Strategy& strategy) const;
  bool is_usual(const Strategy& strategy) const { return text(strategy) == text(Strategy()); }
};

std::span<const StrategyField> strategy_fields();

/// Returns the strategy of this name, with the options in `flags`, in the form in which reports
/// keep them. Options that cannot be read keep their defaults.
Strategy strategy_of(std::string_view name,
                     std::span<const std::pair<std::string, std::string>> flags);
/// The flags of the strategy's options that differ from the default, and of those that are always
/// told: " --late fold".
std::string option_flags(const StrategyKind& kind, const Strategy& strategy);

}  // namespace paceline
