// Strategies in Python: their names come from the table of strategies, and their options from
// strategy_fields.
#include "params/strategy/strategies.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "paceline/error.h"
#include "paceline/strategy.h"
#include "params/strategy/strategy_fields.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

// Returns the name of an option in Python: local_steps for "--local-steps".
std::string python_name(const StrategyField& field) {
  std::string name(std::string_view(field.flag).substr(2));
  std::ranges::replace(name, '-', '_');
  return name;
}

[[noreturn]] void refuse(const std::string& name, const std::string& given,
                         const std::string& allowed) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("Strategy: {} is {}, and must be {}", name, given, allowed));
}

struct Setter {
  Strategy& strategy;
  const std::string& name;
  nb::handle value;
  std::string given() const { return nb::repr(value).c_str(); }

  void operator()(const WholeOption& option) const {
    int number = 0;
    const bool none = option.zero.empty() ? false : value.is_none();
    const bool whole = none || (!nb::isinstance<nb::bool_>(value) && nb::try_cast(value, number));
    if (!none && (!whole || number < option.least || number > option.most))
      refuse(name, given(), fmt::format("a whole number from {} to {}", option.least, option.most));
    strategy.*option.value = number;
  }
  void operator()(const RateOption& option) const {
    float number = 0;
    const bool fits = nb::try_cast(value, number) &&
                      (option.below_one ? number >= 0 && number < 1 : number > 0 && number < 1e30f);
    if (!fits) refuse(name, given(), option.below_one ? "a number from 0 to below 1" : "above 0");
    strategy.*option.value = number;
  }
  void operator()(const WordOption& option) const {
    std::string word;
    const bool text = nb::try_cast(value, word);
    const auto found = std::ranges::find(option.words, word);
    if (!text || found == option.words.end())
      refuse(name, given(), fmt::format("{}", fmt::join(option.words, " or ")));
    option.set(strategy, int(found - option.words.begin()));
  }
};

struct Getter {
  const Strategy& strategy;
  nb::object operator()(const WholeOption& option) const {
    const int value = strategy.*option.value;
    return value == 0 && !option.zero.empty() ? nb::none() : nb::object(nb::int_(value));
  }
  nb::object operator()(const RateOption& option) const {
    return nb::float_(std::stod(fmt::format("{}", strategy.*option.value)));
  }
  nb::object operator()(const WordOption& option) const {
    return nb::str(option.words[std::size_t(option.get(strategy))].c_str());
  }
};

struct TypeText {
  std::string operator()(const WholeOption& option) const {
    return option.zero.empty() ? "int" : "int | None";
  }
  std::string operator()(const RateOption&) const { return "float"; }
  std::string operator()(const WordOption& option) const {
    std::string words;
    for (const std::string& word : option.words)
      words += fmt::format("{}'{}'", words.empty() ? "" : ", ", word);
    return fmt::format("typing.Literal[{}]", words);
  }
};

nb::object value_of(const StrategyField& field, const Strategy& strategy) {
  return std::visit(Getter{strategy}, field.value);
}

Strategy made_of(const std::string& name, const nb::kwargs& options) {
  const std::vector<std::string> names = strategy_names();
  if (!name.empty() && name != kAutomatic && std::ranges::find(names, name) == names.end())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Strategy: there is none named '{}'; there are {} and {}", name,
                            fmt::join(names, ", "), kAutomatic));
  Strategy strategy{.name = name};
  for (const auto& [key, value] : options) {
    const std::string option = nb::cast<std::string>(key);
    const auto fields = strategy_fields();
    const auto field = std::ranges::find(fields, option, python_name);
    if (field == fields.end()) {
      std::vector<std::string> known;
      for (const StrategyField& each : fields) known.push_back(python_name(each));
      throw nb::type_error(
          fmt::format("Strategy has no option '{}'; it has {}", option, fmt::join(known, ", "))
              .c_str());
    }
    std::visit(Setter{strategy, option, value}, field->value);
  }
  return strategy;
}

std::string printed(const Strategy& strategy) {
  std::string text = fmt::format("'{}'", strategy.name);
  for (const StrategyField& field : strategy_fields()) {
    if (field.is_usual(strategy)) continue;
    text += fmt::format(", {}={}", python_name(field), nb::repr(value_of(field, strategy)).c_str());
  }
  return fmt::format("Strategy({})", text);
}

std::vector<std::string> flags_of(const Strategy& strategy) {
  std::vector<std::string> flags;
  if (!strategy.name.empty()) flags = {"--strategy", strategy.name};
  for (const StrategyField& field : strategy_fields()) {
    if (!field.is_usual(strategy)) flags.insert(flags.end(), {field.flag, field.text(strategy)});
  }
  return flags;
}

// Returns the signature of Strategy.__init__ with the types and defaults of all options, for type
// checkers.
const char* signature() {
  static const std::string text = [] {
    std::string options;
    for (const StrategyField& field : strategy_fields()) {
      options +=
          fmt::format(", {}: {} = {}", python_name(field), std::visit(TypeText{}, field.value),
                      nb::repr(value_of(field, Strategy())).c_str());
    }
    return fmt::format("def __init__(self, name: str = '', *{}) -> None", options);
  }();
  return text.c_str();
}

}  // namespace

void bind_strategy(nb::module_& module) {
  nb::class_<Strategy> strategy(
      module, "Strategy",
      "How the workers of a job share what they learn, by its name, and the options that it has. "
      "The "
      "name \"\" stands for the default of the job's tasks, and \"auto\" for the one that is "
      "predicted to be the fastest.");
  strategy.def(
      "__init__",
      [](Strategy* self, const std::string& name, const nb::kwargs& options) {
        new (self) Strategy(made_of(name, options));
      },
      nb::arg("name") = "", nb::arg("options"), nb::sig(signature()),
      "Raises ValueError for a name or a value that there is not.");
  strategy.def_prop_ro(
      "name", [](const Strategy& of) { return of.name; }, "As --strategy takes it.");
  for (const StrategyField& field : strategy_fields()) {
    strategy.def_prop_ro(
        python_name(field).c_str(), [&field](const Strategy& of) { return value_of(field, of); },
        field.help);
  }
  strategy.def("flags", flags_of, "The flags that say the same, as the command takes them.");
  strategy.def("__repr__", printed);
  strategy.def(
      "__eq__",
      [](const Strategy& a, nb::handle other) {
        return nb::isinstance<Strategy>(other) && a == nb::cast<const Strategy&>(other);
      },
      nb::arg("other").none(), nb::sig("def __eq__(self, other: object) -> bool"));
  strategy.def("__hash__", [](const Strategy& a) { return nb::hash(nb::str(printed(a).c_str())); });
  module.def("strategy_names", &strategy_names, "The names of all strategies.");
}

}  // namespace paceline::python
