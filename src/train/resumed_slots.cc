#include "train/resumed_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "checkpoint/checkpoint_match.h"
#include "params/outer/outer_store.h"
#include "params/protocol/placement.h"
#include "params/shard/saved_variables.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

using Say = std::function<void(const std::string&)>;
using FindSlot = std::function<std::optional<Tensor>(const SlotSpec& slot)>;

std::optional<Tensor> own_slot(const SavedVariable& saved, const SavedRows& rows,
                               std::string_view name) {
  const auto found = std::ranges::find(saved.slots, name, &SavedSlot::name);
  if (found == saved.slots.end()) return {};
  return rows.slots[std::size_t(found - saved.slots.begin())];
}

std::optional<Tensor> worker_slot(const TaskState& task, const VariableSpec& spec,
                                  const SlotSpec& slot) {
  const auto found =
      std::ranges::find(task.local, inner_slot_name(spec.name, slot.name), &NamedTensor::name);
  if (found == task.local.end()) return {};
  const Tensor& tensor = found->tensor;
  const bool fits = tensor.dtype() == (slot.scalar ? DType::kInt64 : DType::kFloat32) &&
                    tensor.shape() == (slot.scalar ? Shape{1} : spec.shape);
  return fits ? std::optional(tensor) : std::nullopt;
}

Tensor first_slot(const VariableSpec& spec, const SlotSpec& slot, const Tensor& value) {
  if (slot.name == kAverageSlot) return value.clone();
  if (slot.scalar) return Tensor::of<std::int64_t>({1}, {std::int64_t(slot.initial)});
  Tensor made(DType::kFloat32, spec.shape);
  std::ranges::fill(made.data<float>(), slot.initial);
  return made;
}

// Empty, which has the store begin them all anew, when none is found.
std::vector<Tensor> slots_found(const VariableSpec& spec, const Tensor& value,
                                const FindSlot& find) {
  bool any = false;
  std::vector<Tensor> slots;
  for (const SlotSpec& slot : slots_of(spec)) {
    const std::optional<Tensor> found = find(slot);
    any = any || found;
    slots.push_back(found ? *found : first_slot(spec, slot, value));
  }
  return any ? slots : std::vector<Tensor>();
}

// The states keep none of them.
std::optional<int> move_slots_of_a_worker(std::vector<TaskState>& tasks, TaskState& to) {
  std::optional<int> from;
  for (TaskState& task : tasks) {
    const auto slots =
        std::stable_partition(task.local.begin(), task.local.end(),
                              [](const NamedTensor& local) { return !is_inner_slot(local.name); });
    if (!from && slots != task.local.end()) {
      from = task.worker;
      std::move(slots, task.local.end(), std::back_inserter(to.local));
    }
    task.local.erase(slots, task.local.end());
  }
  return from;
}

// A worker that the checkpoint does not have goes on with the slots of one that it has, as with its
// step.
void give_slots_to_new_workers(std::vector<TaskState>& tasks) {
  const auto is_slot = [](const NamedTensor& local) { return is_inner_slot(local.name); };
  const auto has_slots = [&](const TaskState& task) {
    return std::ranges::any_of(task.local, is_slot);
  };
  const auto from = std::ranges::find_if(tasks, has_slots);
  if (from == tasks.end()) return;
  for (TaskState& task : tasks) {
    if (!has_slots(task))
      std::ranges::copy_if(from->local, std::back_inserter(task.local), is_slot);
  }
}

void add_slots(std::vector<NamedTensor>& inner, const VariableSpec& step,
               const SavedVariable& saved, const SavedRows& rows) {
  if (!step.trained) return;
  for (const SlotSpec& slot : step.rule.slots()) {
    const auto found = own_slot(saved, rows, slot.name);
    if (found) inner.push_back({inner_slot_name(step.name, slot.name), *found});
  }
}

// Returns why they are given to nobody.
std::string give_slots(std::vector<TaskState>& tasks, const std::vector<NamedTensor>& slots) {
  std::vector<TaskState> given = tasks;
  for (TaskState& task : given) {
    task.local.insert(task.local.end(), slots.begin(), slots.end());
    std::string why = why_left_out(task);
    if (!why.empty()) return why;
  }
  tasks = std::move(given);
  return "";
}

void say_slots_became_common(std::optional<int> from, const Say& say) {
  say(fmt::format("the checkpoint is of local steps: {}, and those of the outer rule are left out",
                  from ? fmt::format("the slots of worker:{} become those of all", *from)
                       : "slots begin anew"));
}

void say_slots_are_given(const std::string& why_not, const Say& say) {
  if (!why_not.empty()) say(why_not);
  say(fmt::format(
      "the checkpoint is not of local steps: {}, and those of the outer rule begin anew",
      why_not.empty() ? "each worker goes on with its slots" : "slots begin anew"));
}

}  // namespace

std::vector<SavedVariable> variables_as_saved(const SavableStore& store) {
  const std::span<const VariableSpec> kept = store.kept_variables(), steps = store.variables();
  std::vector<SavedVariable> saved = saved_variables(kept, place_variables(kept, 1), 1);
  if (!store.makes_local_steps()) return saved;
  for (std::size_t id = 0; id < saved.size(); ++id) {
    if (steps[id].trained) saved[id].local_rule = steps[id].rule.name();
  }
  return saved;
}

void take_values_and_slots(InitialState& beginning, const SavableStore& store,
                           const CheckpointReader& reader, const Say& say) {
  const std::vector<SavedVariable> here = variables_as_saved(store);
  const bool was_local =
      std::ranges::any_of(reader.index().variables, &SavedVariable::makes_local_steps);
  const bool is_local = store.makes_local_steps();
  TaskState worker;
  std::optional<int> from;
  if (was_local && !is_local) from = move_slots_of_a_worker(beginning.tasks, worker);
  if (was_local && is_local) give_slots_to_new_workers(beginning.tasks);
  std::vector<NamedTensor> inner;
  bool other_rule = false;
  for (std::size_t id = 0; id < here.size(); ++id) {
    const VariableSpec& spec = store.kept_variables()[id];
    const SavedVariable& saved = reader.index().variable(spec.name);
    const SavedRows rows = reader.read(spec.name);
    const bool same_rule = of_same_rule(saved, here[id]);
    other_rule = other_rule || !same_rule;
    if (!was_local && is_local) add_slots(inner, store.variables()[id], saved, rows);
    beginning.values[id].slots = slots_found(spec, rows.value, [&](const SlotSpec& slot) {
      if (same_rule || slot.name == kAverageSlot) return own_slot(saved, rows, slot.name);
      return worker_slot(worker, spec, slot);
    });
    beginning.values[id].value = rows.value;
  }
  if (was_local && is_local && other_rule) {
    say("the checkpoint has the slots of another outer rule: those of this one begin anew");
  }
  if (was_local && !is_local) say_slots_became_common(from, say);
  if (!was_local && is_local) say_slots_are_given(give_slots(beginning.tasks, inner), say);
}

}  // namespace paceline
