// The names of the library's rules, as checkpoints have them.
#pragma once

#include <array>
#include <string_view>

namespace paceline {

/// The names in the order of RuleKind. That of a custom rule is empty here: the rule's program has
/// it.
inline constexpr std::array<std::string_view, 12> kRuleNames = {
    "sgd", "momentum", "adam",   "adagrad", "rmsprop", "ftrl",
    "ema", "add",      "assign", "adamw",   "",        "delayed_nesterov"};

}  // namespace paceline
