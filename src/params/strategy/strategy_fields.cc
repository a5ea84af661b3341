#include "params/strategy/strategy_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace paceline {
namespace {

constexpr int kMostWorkers = 1024, kMostSteps = 1'000'000;

constexpr const char* kNeedsRounds =
    "needs --strategy sync, or local_sgd, and --ps: no other strategy has such rounds";
constexpr const char* kNeedsLocalSteps =
    "needs --strategy local_sgd and several workers: no other strategy makes local steps";

bool limits_lead(const StrategyKind& kind, const Strategy&) { return kind.limits_lead; }
bool ps_closes_rounds(const StrategyKind& kind, const Strategy& options) {
  return kind.ps_closes_rounds(options);
}
bool makes_local_steps(const StrategyKind& kind, const Strategy&) { return kind.makes_local_steps; }

template <typename Number>
void read(std::string_view text, Number& number) {
  std::from_chars(text.data(), text.data() + text.size(), number);
}

struct Reader {
  std::string_view text;
  Strategy& strategy;
  void operator()(const WholeOption& option) const { read(text, strategy.*option.value); }
  void operator()(const RateOption& option) const { read(text, strategy.*option.value); }
  void operator()(const WordOption& option) const {
    const auto word = std::ranges::find(option.words, text);
    if (word != option.words.end()) option.set(strategy, int(word - option.words.begin()));
  }
};

struct Writer {
  const Strategy& strategy;
  std::string operator()(const WholeOption& option) const {
    return std::to_string(strategy.*option.value);
  }
  std::string operator()(const RateOption& option) const {
    return fmt::format("{}", strategy.*option.value);
  }
  std::string operator()(const WordOption& option) const {
    return option.words[std::size_t(option.get(strategy))];
  }
};

// The options by which ps tasks bound the lead of a worker and close rounds.
std::vector<StrategyField> ps_fields() {
  return {
      {.flag = "--staleness",
       .argument = "S",
       .help = "With ssp, the number of own steps by which a worker may be ahead of the slowest "
               "(default 0)",
       .needs = "needs --strategy ssp: no other strategy makes fast workers wait",
       .traits_have_it = limits_lead,
       .value = WholeOption{&Strategy::staleness, 0, kMostSteps}},
      {.flag = "--replicas-to-aggregate",
       .argument = "K",
       .help = "With sync, the number of contributions that close a round (default: all workers); "
               "--steps counts rounds",
       .needs = kNeedsRounds,
       .traits_have_it = ps_closes_rounds,
       .value = WholeOption{&Strategy::replicas, 1, kMostWorkers, "all"}},
      {.flag = "--late",
       .argument = "drop|fold",
       .help = "With sync, the fate of a contribution that arrives after its round was closed: it "
               "is dropped, or counts in the next one (default drop)",
       .needs = kNeedsRounds,
       .traits_have_it = ps_closes_rounds,
       .value = WordOption{{"drop", "fold"},
                           [](const Strategy& strategy) { return int(strategy.late); },
                           [](Strategy& strategy, int word) {
                             strategy.late = kLateContributions[std::size_t(word)];
                           }}},
  };
}

std::vector<StrategyField> local_sgd_fields() {
  return {
      {.flag = "--local-steps",
       .argument = "H",
       .help = "With local_sgd, the steps that each makes on its own between two "
               "exchanges of a variable (default 20; from 1 on)",
       .needs = kNeedsLocalSteps,
       .traits_have_it = makes_local_steps,
       .value = WholeOption{&Strategy::local_steps, 1, kMostSteps},
       .always_told = true},
      {.flag = "--outer-rate",
       .argument = "R",
       .help = "With local_sgd, the learning rate at which the workers' mean change is applied "
               "(default 0.7; above 0)",
       .needs = kNeedsLocalSteps,
       .traits_have_it = makes_local_steps,
       .value = RateOption{&Strategy::outer_rate}},
      {.flag = "--outer-momentum",
       .argument = "M",
       .help =
           "With local_sgd, the Nesterov momentum of that; with 0 at rate 1 copies are averaged "
           "(default 0.5; below 1)",
       .needs = kNeedsLocalSteps,
       .traits_have_it = makes_local_steps,
       .value = RateOption{&Strategy::outer_momentum, true}},
      {.flag = "--outer-fragments",
       .argument = "P",
       .help =
           "With local_sgd, the parts in which variables are exchanged, by turns; with more than 1 "
           "workers go on meanwhile (default: 2 with --ps and H of at least 8, else 1)",
       .needs = kNeedsLocalSteps,
       .traits_have_it = makes_local_steps,
       .value = WholeOption{&Strategy::outer_fragments, 1, kMostSteps, "the usual"}},
      {.flag = "--outer",
       .argument = "sync|async",
       .help =
           "With local_sgd and --ps, whether the workers' mean change is applied, in rounds, or "
           "each change as it arrives, so that no worker waits for another; --steps then "
           "counts the local steps of all workers together (default sync)",
       .needs = kNeedsLocalSteps,
       .traits_have_it = makes_local_steps,
       .value = WordOption{{"sync", "async"},
                           [](const Strategy& strategy) { return int(strategy.outer_async); },
                           [](Strategy& strategy, int word) { strategy.outer_async = word == 1; }}},
  };
}

}  // namespace

std::span<const StrategyField> strategy_fields() {
  static const std::vector<StrategyField> fields = [] {
    std::vector<StrategyField> all = ps_fields();
    std::ranges::move(local_sgd_fields(), std::back_inserter(all));
    return all;
  }();
  return fields;
}

// If the strategy fixes an option, the option has the same value whatever the user gives, so it
// does not count as an option of the strategy.
bool StrategyField::is_of(const StrategyKind& kind, const Strategy& options) const {
  if (!traits_have_it(kind, options)) return false;
  const auto* const words = std::get_if<WordOption>(&value);
  const auto with = [&](int which) {
    Strategy asked;
    const std::string number = std::to_string(which);
    std::visit(Reader{words == nullptr ? number : words->words[std::size_t(which)], asked}, value);
    return text(settled(kind, asked));
  };
  return with(0) != with(1);
}

std::string StrategyField::text(const Strategy& strategy) const {
  return std::visit(Writer{strategy}, value);
}

std::string StrategyField::agreed_text(const Strategy& strategy) const {
  const auto* const whole = std::get_if<WholeOption>(&value);
  const bool chosen = whole != nullptr && strategy.*whole->value == 0 && !whole->zero.empty();
  return chosen ? std::string(whole->zero) : text(strategy);
}

Strategy strategy_of(std::string_view name,
                     std::span<const std::pair<std::string, std::string>> flags) {
  Strategy strategy{.name = std::string(name)};
  for (const auto& [flag, text] : flags) {
    const auto fields = strategy_fields();
    const auto field = std::ranges::find(fields, std::string_view(flag), &StrategyField::flag);
    if (field != fields.end()) std::visit(Reader{text, strategy}, field->value);
  }
  return strategy;
}

std::string option_flags(const StrategyKind& kind, const Strategy& strategy) {
  std::string flags;
  for (const StrategyField& field : strategy_fields()) {
    const bool told = field.always_told || !field.is_usual(strategy);
    if (!told || !field.is_of(kind, strategy)) continue;
    flags += fmt::format(" {} {}", field.flag, field.text(strategy));
  }
  return flags;
}

}  // namespace paceline
