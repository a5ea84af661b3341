#include "checkpoint/checkpoint_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace paceline {
namespace {

std::string rule_text(const SavedVariable& variable) {
  if (variable.rule.empty()) return "";
  if (variable.local_rule.empty()) return ", " + variable.rule;
  return fmt::format(", {} over local steps of {}", variable.rule, variable.local_rule);
}

std::string described(const SavedVariable& variable) {
  std::vector<std::string> slots;
  for (const SavedSlot& slot : variable.slots) slots.push_back(slot.name);
  return fmt::format("{} {}{}{}{}", variable.shape.str(), name_of(variable.dtype),
                     rule_text(variable), slots.empty() ? "" : " with ", fmt::join(slots, ", "));
}

// If both variables have the same rule, their slots must be equal. If the rules differ in their use
// of local steps, the code that resumes deals with the slots.
bool same(const SavedVariable& a, const SavedVariable& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.step_rule() == b.step_rule() &&
         (!of_same_rule(a, b) || a.slots == b.slots);
}

std::unordered_map<std::string_view, const SavedVariable*> by_name(
    std::span<const SavedVariable> variables) {
  std::unordered_map<std::string_view, const SavedVariable*> named;
  for (const SavedVariable& variable : variables) named[variable.name] = &variable;
  return named;
}

}  // namespace

bool of_same_rule(const SavedVariable& a, const SavedVariable& b) {
  return a.rule == b.rule && a.local_rule == b.local_rule;
}

std::vector<std::string> differences(std::span<const SavedVariable> saved,
                                     std::span<const SavedVariable> model) {
  std::vector<std::string> lines;
  const auto in_checkpoint = by_name(saved), in_model = by_name(model);
  for (const SavedVariable& wanted : model) {
    const auto found = in_checkpoint.find(wanted.name);
    if (found == in_checkpoint.end()) {
      lines.push_back(fmt::format("{}: only in the model, {}", wanted.name, described(wanted)));
    } else if (!same(*found->second, wanted)) {
      lines.push_back(fmt::format("{}: {} in the checkpoint, {} in the model", wanted.name,
                                  described(*found->second), described(wanted)));
    }
  }
  for (const SavedVariable& variable : saved) {
    if (in_model.contains(variable.name)) continue;
    lines.push_back(
        fmt::format("{}: only in the checkpoint, {}", variable.name, described(variable)));
  }
  return lines;
}

namespace {

// Returns a name that only the first list has; null if there is none.
const std::string* only_in(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::unordered_set<std::string_view> known(b.begin(), b.end());
  const auto found =
      std::ranges::find_if(a, [&](const auto& name) { return !known.contains(name); });
  return found == a.end() ? nullptr : &*found;
}

std::string difference_of(const std::string& kind, const std::vector<std::string>& saved,
                          const std::vector<std::string>& data) {
  if (saved == data) return "";
  if (const std::string* const name = only_in(saved, data)) {
    return fmt::format("the {} of the data lack '{}', which it was trained with", kind, *name);
  }
  if (const std::string* const name = only_in(data, saved)) {
    return fmt::format("the {} of the data have '{}', which it was trained without", kind, *name);
  }
  const auto at = std::ranges::mismatch(saved, data);
  if (at.in1 == saved.end() || at.in2 == data.end()) {
    return fmt::format("the {} of the data are {}, and it was trained with {}", kind, data.size(),
                       saved.size());
  }
  return fmt::format("number {} of the {} is '{}' in the data, and it was trained with '{}'",
                     at.in1 - saved.begin(), kind, *at.in2, *at.in1);
}

}  // namespace

std::string first_difference(const DataNames& saved, const DataNames& data) {
  for (const auto& [kind, names] : saved) {
    const auto found = data.find(kind);
    if (found == data.end()) continue;
    if (std::string text = difference_of(kind, names, found->second); !text.empty()) {
      return text;
    }
  }
  return "";
}

}  // namespace paceline
