// The names of the library's rules, as checkpoints have them.
#pragma once

#include <array>
#include <string_view>

namespace paceline {

/// They are numbered as RuleKind; the program of a rule of one's own has its name.
inline constexpr std::array<std::string_view, 12> kRuleNames = {
    "sgd", "momentum", "adam",   "adagrad", "rmsprop", "ftrl",
    "ema", "add",      "assign", "adamw",   "",        "delayed_nesterov"};

}  // namespace paceline
