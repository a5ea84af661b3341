// The rules as Python classes (Adam, Sgd, …), with the numbers and defaults of rule.h.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "paceline/error.h"
#include "paceline/rule.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

// A rule together with the numbers that it was made from.
template <typename Numbers>
struct Made : Rule {
  explicit Made(const Numbers& made_of) : Rule(made_of), numbers(made_of) {}
  Numbers numbers;
};

template <typename Numbers, typename T>
struct Field {
  const char* name;
  T Numbers::*member;
  const char* doc;
};

// Returns the double with the shortest decimal text that reads as this float: 0.001 for 1e-3f, not
// 0.0010000000474974513.
double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }
template <typename T>
auto python_number(T value) {
  if constexpr (std::is_same_v<T, float>)
    return shortest(value);
  else
    return value;
}

std::string python_text(bool value) { return value ? "True" : "False"; }
std::string python_text(auto value) { return fmt::format("{}", value); }

template <typename Numbers, typename... T>
void bind_rule(nb::module_& module, const char* name, const char* doc,
               Field<Numbers, T>... fields) {
  using Own = Made<Numbers>;
  nb::class_<Own, Rule> made(module, name, doc);
  const auto members = std::make_tuple(fields.member...);
  made.def(
      "__init__",
      [members](Own* self, decltype(python_number(T{}))... values) {
        Numbers numbers;
        std::apply([&](auto... member) { ((numbers.*member = T(values)), ...); }, members);
        new (self) Own(numbers);
      },
      (nb::arg(fields.name) = python_number(Numbers{}.*(fields.member)))...,
      "Raises ValueError when a number is out of its range.");
  (made.def_prop_ro(
       fields.name,
       [member = fields.member](const Own& rule) { return python_number(rule.numbers.*member); },
       fields.doc),
   ...);
  const auto names = std::make_tuple(fields.name...);
  made.def("__repr__", [name, members, names](const Own& rule) {
    std::string text;
    const auto add = [&](const char* field, auto member) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", field,
                          python_text(rule.numbers.*member));
    };
    std::apply(
        [&](auto... field) {
          std::apply([&](auto... member) { (add(field, member), ...); }, members);
        },
        names);
    return fmt::format("{}({})", name, text);
  });
}

// Returns a NumPy array over memory that is valid only while the rule is applied.
template <typename T>
nb::object lent(T* data, std::int64_t elements) {
  const std::size_t shape[] = {std::size_t(elements)};
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, 1, shape), nb::rv_policy::reference);
}

// Makes a rule from a Python function. The thread that applies rules will call the function.
Rule code_rule(const std::string& name, float learning_rate, const std::vector<std::string>& slots,
               nb::callable apply) {
  CodeRule rule{.name = name, .learning_rate = learning_rate, .slots = {}, .apply = {}};
  for (const std::string& slot : slots) rule.slots.push_back({slot});
  const std::shared_ptr<nb::callable> function(new nb::callable(std::move(apply)),
                                               [](const nb::callable* owned) {
                                                 const nb::gil_scoped_acquire acquired;
                                                 delete owned;
                                               });
  rule.apply = [function, name](const CodeRuleCall& memory) {
    const nb::gil_scoped_acquire acquired;
    try {
      nb::list slots;
      for (float* const slot : memory.slots) slots.append(lent(slot, memory.elements));
      (*function)(lent(memory.value, memory.elements), slots,
                  lent(const_cast<float*>(memory.gradient), memory.elements), memory.count);
    } catch (const nb::python_error& error) {
      throw Error(ErrorCode::kInternal, fmt::format("[rule] {}: {}", name, error.what()));
    }
  };
  return rule;
}

void bind_base(nb::module_& module) {
  nb::class_<Rule>(
      module, "Rule",
      "A rule (optimizer): how a contribution g changes a variable w and its slots. It runs where "
      "the variable lives: in this process or on a parameter server.")
      .def_prop_ro("name", &Rule::name, "Its name in checkpoints and reports, such as \"adam\".")
      .def_prop_ro(
          "slots",
          [](const Rule& rule) {
            nb::list names;
            for (const SlotSpec& slot : rule.slots()) names.append(slot.name);
            return nb::tuple(names);
          },
          nb::sig("def slots(self) -> tuple[str, ...]"),
          "The names of what it keeps for each variable, such as (\"m\", \"v\", \"t\").")
      .def(
          "__eq__",
          [](const Rule& rule, nb::handle other) {
            return nb::isinstance<Rule>(other) && rule == nb::cast<const Rule&>(other);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__", [](const Rule& rule) {
        return nb::hash(nb::str(rule.name().data(), rule.name().size()));
      });
}

void bind_code_rule(nb::module_& module) {
  module.def(
      "code_rule", &code_rule, nb::arg("name"), nb::arg("learning_rate"), nb::arg("slots"),
      nb::arg("apply"),
      nb::sig(
          "def code_rule(name: str, learning_rate: float, slots: collections.abc.Sequence[str], "
          "apply: collections.abc.Callable[..., None]) -> Rule"),
      "A rule that apply(value, slots, gradient, count) computes in this process: it changes the "
      "arrays of value and slots, which are valid during the call alone.");
}

}  // namespace

void bind_rules(nb::module_& module) {
  bind_base(module);
  constexpr const char* kRate = "The learning rate.";
  bind_rule(module, "Sgd", "w ← w − learning_rate·g.",
            Field{"learning_rate", &Sgd::learning_rate, kRate});
  bind_rule(module, "Momentum",
            "m ← momentum·m + g; w ← w − learning_rate·m, with nesterov w ← w − learning_rate·(g + "
            "momentum·m). torch.optim.SGD with momentum and dampening=0 is the same.",
            Field{"learning_rate", &Momentum::learning_rate, kRate},
            Field{"momentum", &Momentum::momentum, "The part of m that stays."},
            Field{"nesterov", &Momentum::nesterov, "Looks ahead by one m."});
  bind_rule(
      module, "Adam",
      "Kingma & Ba, arXiv 1412.6980, in the efficient form at the end of its section 2; epsilon is "
      "added to the root before the correction of its bias.",
      Field{"learning_rate", &Adam::learning_rate, kRate},
      Field{"beta1", &Adam::beta1, "The decay of the first moment m."},
      Field{"beta2", &Adam::beta2, "The decay of the second moment v."},
      Field{"epsilon", &Adam::epsilon, "Added to the root of v."});
  bind_rule(module, "AdamW",
            "Adam with decoupled weight decay (arXiv 1711.05101): w ← (1 − "
            "learning_rate·weight_decay)·w, "
            "then as Adam.",
            Field{"learning_rate", &AdamW::learning_rate, kRate},
            Field{"beta1", &AdamW::beta1, "The decay of the first moment m."},
            Field{"beta2", &AdamW::beta2, "The decay of the second moment v."},
            Field{"epsilon", &AdamW::epsilon, "Added to the root of v."},
            Field{"weight_decay", &AdamW::weight_decay,
                  "The decay of w, in units of the learning rate."});
  bind_rule(module, "Adagrad", "a ← a + g²; w ← w − learning_rate·g / (√a + epsilon).",
            Field{"learning_rate", &Adagrad::learning_rate, kRate},
            Field{"initial_accumulator", &Adagrad::initial_accumulator, "The initial value of a."},
            Field{"epsilon", &Adagrad::epsilon, "Added to the root of a."});
  bind_rule(
      module, "Rmsprop",
      "s ← decay·s + (1 − decay)·g²; m ← momentum·m + learning_rate·g / √(s + epsilon); w ← w − m.",
      Field{"learning_rate", &Rmsprop::learning_rate, kRate},
      Field{"decay", &Rmsprop::decay, "The part of s that stays."},
      Field{"momentum", &Rmsprop::momentum, "The part of m that stays."},
      Field{"epsilon", &Rmsprop::epsilon, "Added to s."});
  bind_rule(
      module, "Ftrl", "FTRL-proximal (McMahan et al., KDD 2013), learning-rate power −1/2.",
      Field{"learning_rate", &Ftrl::learning_rate, kRate},
      Field{"l1", &Ftrl::l1, "The weight of Σ|w|."}, Field{"l2", &Ftrl::l2, "The weight of Σw²."},
      Field{"initial_accumulator", &Ftrl::initial_accumulator, "The initial sum of squares."});
  bind_rule(module, "DelayedNesterov",
            "Nesterov's momentum for changes that arrive one by one from `period` workers (arXiv "
            "2401.09135).",
            Field{"learning_rate", &DelayedNesterov::learning_rate, kRate},
            Field{"momentum", &DelayedNesterov::momentum, "The part of m that stays."},
            Field{"period", &DelayedNesterov::period,
                  "The number of changes that bring the momentum once."});
  bind_rule(module, "Ema",
            "w ← decay·w + (1 − decay)·g: moving averages, such as batch norm's statistics.",
            Field{"decay", &Ema::decay, "The part of w that stays."});
  bind_rule<Add>(module, "Add", "w ← w + g.");
  bind_rule<Assign>(module, "Assign", "w ← g.");
  bind_code_rule(module);
}

}  // namespace paceline::python
