#include "exec/fed_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {
namespace {

// True, by storage, where something of the plan reads what lies there.
std::vector<bool> read_storages(const Plan& plan) {
  std::vector<bool> read(plan.storages.size());
  const auto note = [&](SlotIndex slot) {
    if (slot >= 0) read[std::size_t(plan.slots[std::size_t(slot)].storage)] = true;
  };
  for (const Instruction& instruction : plan.instructions) {
    std::ranges::for_each(instruction.inputs, note);
  }
  for (const RowReads& reads : plan.row_reads) std::ranges::for_each(reads.ids, note);
  std::ranges::for_each(plan.fetches, note);
  note(plan.loss);
  note(plan.global_norm);
  return read;
}

}  // namespace

FedInputs::FedInputs(const Plan& plan) {
  const std::vector<bool> read = read_storages(plan);
  for (const auto& [name, slot] : plan.inputs) {
    Input input;
    input.name = name;
    input.read = read[std::size_t(plan.slots[std::size_t(slot)].storage)];
    inputs_.push_back(std::move(input));
  }
}

void FedInputs::begin() {
  for (Input& input : inputs_) {
    input.fed = input.kept;
    input.filled = false;
  }
}

FedInputs::Input* FedInputs::find(std::string_view name) {
  const auto found = std::ranges::find(inputs_, name, &Input::name);
  return found != inputs_.end() ? &*found : nullptr;
}

void FedInputs::note(std::string_view name) {
  Input* const input = find(name);
  if (input == nullptr) return;
  input->fed = input->filled = true;
  input->kept = false;
  input->once = Tensor();
}

void FedInputs::keep(std::string_view name) {
  Input* const input = find(name);
  if (input == nullptr || !input->fed) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[feed] '{}' is to be kept, but was not fed for this step", name));
  }
  input->kept = true;
}

void FedInputs::keep(std::string_view name, const Tensor& tensor) {
  keep(name);
  find(name)->once = tensor;
}

bool FedInputs::keeps(std::string_view name, const Tensor& tensor) const {
  const auto input = std::ranges::find(inputs_, name, &Input::name);
  return input != inputs_.end() && input->kept && input->once.defined() &&
         input->once.raw() == tensor.raw();
}

void FedInputs::check() const {
  const auto unfed =
      std::ranges::find_if(inputs_, [](const Input& input) { return input.read && !input.fed; });
  if (unfed == inputs_.end()) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[feed] input '{}' was not fed for this step: fill it in every step, or "
                          "let it stay the same (Feed::set_once, Feed::keep)",
                          unfed->name));
}

}  // namespace paceline
