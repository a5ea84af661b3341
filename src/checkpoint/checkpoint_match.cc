#include "checkpoint/checkpoint_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

namespace paceline {
namespace {

std::string described(const SavedVariable& variable) {
  std::vector<std::string> slots;
  for (const SavedSlot& slot : variable.slots) slots.push_back(slot.name);
  return fmt::format("{} {}{}{}{}", variable.shape.str(), name_of(variable.dtype),
                     variable.rule.empty() ? "" : ", " + variable.rule,
                     slots.empty() ? "" : " with ", fmt::join(slots, ", "));
}

bool same(const SavedVariable& a, const SavedVariable& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.rule == b.rule && a.slots == b.slots;
}

std::unordered_map<std::string_view, const SavedVariable*> by_name(
    std::span<const SavedVariable> variables) {
  std::unordered_map<std::string_view, const SavedVariable*> named;
  for (const SavedVariable& variable : variables) named[variable.name] = &variable;
  return named;
}

}  // namespace

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

}  // namespace paceline
