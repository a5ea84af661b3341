#include "exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/denormals.h"
#include "base/machine_memory.h"
#include "base/open_dimension.h"
#include "exec/plan.h"
#include "kernels/device.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// Returns for each storage whether the plan reads it.
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

void FedInputs::begin(bool has_kept) {
  for (Input& input : inputs_) {
    input.fed = has_kept && input.kept;
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

bool FedInputs::has_kept(std::string_view name, const Tensor& tensor) {
  Input* const input = find(name);
  if (input == nullptr || !input->kept || !input->once.defined()) return false;
  if (input->once.raw() != tensor.raw()) return false;
  return input->fed = true;
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

TensorView HostCopies::of(const TensorView& view, Device& device) {
  if (device.space().host()) return view;
  copies_.push_back({view, Buffer(view.bytes())});
  return {copies_.back().to.data(), view.dtype, view.shape};
}

void HostCopies::refresh(Device& device) const {
  for (const Copy& copy : copies_) {
    device.download(copy.to.data(), copy.from.data, copy.from.bytes());
  }
}

LocalMemory::LocalMemory(const Graph& graph, Device& device, const LocalMemory* common)
    : device_(device) {
  std::size_t bytes = 0;
  std::map<std::string, std::size_t> offsets;
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "local") continue;
    const ValueType& type = node->outputs()[0];
    if (std::ranges::any_of(type.shape.dims(), is_open)) continue;
    const TensorView view{nullptr, type.dtype, type.shape};
    if (common != nullptr && common->contains(node->name())) {
      const TensorView known = common->view(node->name());
      if (known.dtype == view.dtype && known.shape == view.shape) {
        views_[node->name()] = known;
        continue;
      }
    }
    views_[node->name()] = view;
    offsets[node->name()] = bytes;
    bytes += round_up(std::max<std::size_t>(view.bytes(), 1), kBufferAlignment);
  }
  memory_ = device.allocate(bytes);
  for (const auto& [name, offset] : offsets) views_[name].data = memory_.data() + offset;
}

TensorView LocalMemory::view(std::string_view name) const {
  const auto found = views_.find(name);
  if (found != views_.end()) return found->second;
  throw Error(ErrorCode::kNotFound, fmt::format("[locals] no local variable {}", name));
}

Tensor LocalMemory::read(std::string_view name) const {
  const TensorView from = view(name);
  Tensor tensor(from.dtype, from.shape);
  device_.download(tensor.raw(), from.data, from.bytes());
  device_.synchronize();
  return tensor;
}

void LocalMemory::write(std::string_view name, const Tensor& value) {
  const TensorView to = view(name);
  PACELINE_CHECK(to.bytes() == value.bytes());
  device_.upload(to.data, value.raw(), value.bytes());
  device_.synchronize();
}

void LocalMemory::reset() {
  if (memory_.size() == 0) return;
  const Buffer zeros(memory_.size());
  device_.upload(memory_.data(), zeros.data(), zeros.size());
  device_.synchronize();
}

RowCollector::RowCollector(std::span<const RowReads> reads,
                           std::span<const std::vector<TensorView>> ids) {
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Reads own{reads[i].rows, reads[i].all, ids[i], {}};
    std::int64_t most = own.all ? own.rows : 0;
    for (const TensorView& view : own.ids) most += view.shape.elements();
    own.unique.resize(std::size_t(most));
    if (own.all) std::iota(own.unique.begin(), own.unique.end(), 0);
    reads_.push_back(std::move(own));
    sets_.push_back({reads[i].variable, {}});
  }
}

std::span<const RowSet> RowCollector::collect() {
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const std::size_t size = reads_[i].all ? reads_[i].unique.size() : unite(reads_[i]);
    sets_[i].ids = {reads_[i].unique.data(), size};
  }
  return sets_;
}

std::size_t RowCollector::unite(Reads& reads) {
  auto end = reads.unique.begin();
  for (const TensorView& ids : reads.ids) {
    const std::int32_t* first = ids.as<std::int32_t>();
    end = std::copy(first, first + ids.shape.elements(), end);
  }
  std::sort(reads.unique.begin(), end);
  end = std::unique(reads.unique.begin(), end);
  const std::size_t size = std::size_t(end - reads.unique.begin());
  if (size > 0 && (reads.unique[0] < 0 || reads.unique[size - 1] >= reads.rows)) {
    const std::int32_t wrong = reads.unique[0] < 0 ? reads.unique[0] : reads.unique[size - 1];
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[embedding_lookup] id {} is outside [0,{})", wrong, reads.rows));
  }
  return size;
}

namespace {

// Makes a store in host memory usable for a device whose kernels do not reach that memory.

class StagedSteps : public StoreSteps {
 public:
  StagedSteps(Device& device, std::shared_ptr<StoreSteps> steps, const Plan& plan)
      : device_(device), steps_(std::move(steps)) {
    for (const Storage& storage : plan.storages) {
      if (storage.kind == Storage::Kind::kVariable) make_room(values_, storage);
      if (storage.kind == Storage::Kind::kPlace) make_room(places_, storage);
    }
    for (const RowReads& reads : plan.row_reads) {
      staged(values_, reads.variable).by_rows = !reads.all;
    }
  }

  NormBy norm_by() const override { return steps_->norm_by(); }
  MemorySpace space() const override { return device_.space(); }
  void count_waits(StepAccount& account) override { steps_->count_waits(account); }
  bool wants_next_rows() const override { return steps_->wants_next_rows(); }
  void begin_step(StepKind kind, std::span<const RowSet> rows,
                  const StepScalars& scalars) override {
    for (const RowSet& set : rows) staged(values_, set.variable).rows = set.ids;
    steps_->begin_step(kind, rows, scalars);
  }
  SumExchange* exchange() override { return steps_->exchange(); }
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override;
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    return steps_->end_step(clip_scale, next_rows);
  }

 private:
  struct Staged {
    Buffer memory;
    TensorView host;  // for a place: the store's memory for the contribution
    bool by_rows = false;
    std::span<const std::int32_t> rows;  // the rows of a value that the batch reads
  };

  void make_room(std::vector<Staged>& all, const Storage& storage) const {
    const std::size_t at = std::size_t(storage.variable);
    if (at >= all.size()) all.resize(at + 1);
    if (all[at].memory.size() < storage.bytes) all[at].memory = device_.allocate(storage.bytes);
  }
  static Staged& staged(std::vector<Staged>& all, VariableId variable) {
    PACELINE_CHECK(variable >= 0 && std::size_t(variable) < all.size());
    return all[std::size_t(variable)];
  }
  void upload_rows(const Staged& staged, const TensorView& host);

  Device& device_;
  const std::shared_ptr<StoreSteps> steps_;
  // By variable; a variable that the plan does not use has no memory.
  std::vector<Staged> values_, places_;
};

std::size_t row_bytes(const TensorView& view) {
  return view.bytes() / std::size_t(std::max<std::int64_t>(view.shape[0], 1));
}

// One copy moves all rows of a run of consecutive ids.
void StagedSteps::upload_rows(const Staged& staged, const TensorView& host) {
  const std::size_t row = row_bytes(host);
  const auto* const from = static_cast<const std::byte*>(host.data);
  for (std::size_t i = 0; i < staged.rows.size();) {
    const std::size_t first = i++;
    while (i < staged.rows.size() && staged.rows[i] == staged.rows[i - 1] + 1) ++i;
    const std::size_t offset = std::size_t(staged.rows[first]) * row;
    device_.upload(staged.memory.data() + offset, from + offset, (i - first) * row);
  }
}

AsyncView StagedSteps::need(VariableId variable) {
  const AsyncView host = steps_->need(variable);
  const Staged& value = staged(values_, variable);
  PACELINE_CHECK(host.view.bytes() <= value.memory.size());
  device_.wait(host.event);
  if (value.by_rows) {
    upload_rows(value, host.view);
  } else {
    device_.upload(value.memory.data(), host.view.data, host.view.bytes());
  }
  return TensorView{value.memory.data(), host.view.dtype, host.view.shape};
}

AsyncView StagedSteps::place(VariableId variable) {
  const AsyncView host = steps_->place(variable);
  Staged& place = staged(places_, variable);
  if (place.memory.size() < host.view.bytes()) place.memory = device_.allocate(host.view.bytes());
  device_.wait(host.event);
  place.host = host.view;
  return TensorView{place.memory.data(), host.view.dtype, host.view.shape};
}

void StagedSteps::ready(VariableId variable, const Contribution& contribution, const Event& event) {
  const Staged& place = staged(places_, variable);
  const std::size_t bytes =
      contribution.sparse ? contribution.ids.size() * row_bytes(place.host) : place.host.bytes();
  PACELINE_CHECK(bytes <= place.memory.size());
  device_.wait(event);
  device_.download(place.host.data, place.memory.data(), bytes);
  steps_->ready(variable, contribution, device_.record());
}

double scalar_of(const TensorView& view) {
  return view.dtype == DType::kFloat64 ? *view.as<double>() : double(*view.as<float>());
}

Activity activity_of(Instruction::Kind kind) {
  switch (kind) {
    case Instruction::Kind::kNeed:
      return Activity::kPull;
    case Instruction::Kind::kPlace:
    case Instruction::Kind::kReady:
      return Activity::kPush;
    default:
      return Activity::kCompute;
  }
}

// Returns the size of the arena in bytes. Throws kInvalidArgument if a step's memory does not fit
// into the machine's: the system promises more memory than it has, so an allocation that is too
// large may succeed.
std::size_t checked_arena(const Plan& plan) {
  check_fits_machine("[executor] a step of this batch needs",
                     double(plan.arena_bytes) + double(plan.input_bytes));
  return plan.arena_bytes;
}

/// Passes ranges of a contribution on, and keeps a copy.
class CopyingSink : public OutputSink {
 public:
  CopyingSink(OutputSink& to, const TensorView& like)
      : to_(to), copy_(like.dtype, like.shape), values_(copy_.data<float>()) {}
  TensorView view() const { return {copy_.raw(), copy_.dtype(), copy_.shape()}; }
  void take(std::int64_t first, std::span<const float> values) override {
    std::ranges::copy(values, values_.begin() + first);
    to_.take(first, values);
  }

 private:
  OutputSink& to_;
  const Tensor copy_;
  const std::span<float> values_;
};

}  // namespace

std::shared_ptr<StoreSteps> steps_on(Device& device, std::shared_ptr<StoreSteps> steps,
                                     const Plan& plan) {
  if (steps->space() == device.space()) return steps;
  if (steps->space().host()) return std::make_shared<StagedSteps>(device, std::move(steps), plan);
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[executor] the store's values lie in the memory of a device that {} "
                          "does not reach",
                          device.name()));
}

Executor::Executor(Plan& plan, std::shared_ptr<StoreSteps> steps, LocalMemory& locals,
                   Device& device, StepAccount& account, std::shared_ptr<Buffer> arena)
    : plan_(plan),
      fed_inputs_(plan),
      steps_(steps_on(device, std::move(steps), plan)),
      locals_(locals),
      device_(device),
      account_(account),
      host_inputs_(device.space().host() ? 0 : plan.input_bytes),
      arena_(arena != nullptr && arena->size() >= checked_arena(plan)
                 ? std::move(arena)
                 : std::make_shared<Buffer>(device.allocate(checked_arena(plan)))),
      inputs_(device.allocate(plan.input_bytes)),
      constants_(plan.storages.size()),
      store_views_(plan.storages.size()),
      rows_(collector()),
      wants_next_inputs_(steps_->wants_next_rows() && inputs_are_free_early()) {
  for (const Storage& storage : plan.storages) {
    PACELINE_CHECK(storage.kind == Storage::Kind::kConstant || storage.space == device.space());
  }
  if (steps_->exchange() != nullptr) check_repeatable();
  steps_->count_waits(account);
  upload_constants();
  for (const Instruction& instruction : plan.instructions) {
    commands_.push_back(prepare(instruction));
  }
  note_store_views();
  find_awaited();
  for (const SlotIndex slot : plan.fetches) fetched_.push_back(host_view_of(slot, results_));
  if (plan.loss >= 0) loss_ = host_view_of(plan.loss, results_);
  if (plan.global_norm >= 0) global_norm_ = host_view_of(plan.global_norm, results_);
}

// Refuses a train step that cannot be repeated: a repetition would change local variables twice. A
// repetition also needs the step's inputs, so they must not be filled for the next step early.
void Executor::check_repeatable() const {
  if (std::ranges::none_of(plan_.binding.uses, &PlanBinding::Use::updated)) return;
  PACELINE_CHECK(!wants_next_inputs_);
  for (const Instruction& instruction : plan_.instructions) {
    if (instruction.kind != Instruction::Kind::kCopy) continue;
    const int storage = plan_.slots[std::size_t(instruction.outputs[0])].storage;
    const Storage& written = plan_.storages[std::size_t(storage)];
    if (written.kind != Storage::Kind::kLocal) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[executor] batch norm of the whole batch (--sync-batch-norm) does not "
                            "go with steps that change local variables: {}",
                            written.name));
  }
}

void Executor::upload_constants() {
  for (std::size_t i = 0; i < plan_.storages.size(); ++i) {
    const Storage& storage = plan_.storages[i];
    if (storage.kind != Storage::Kind::kConstant || storage.space == device_.space()) continue;
    constants_[i] = device_.allocate(storage.bytes);
    device_.upload(constants_[i].data(), storage.constant.raw(), storage.bytes);
  }
}

RowCollector Executor::collector() {
  std::vector<std::vector<TensorView>> ids;
  for (const RowReads& reads : plan_.row_reads) {
    std::vector<TensorView>& views = ids.emplace_back();
    for (const SlotIndex slot : reads.ids) views.push_back(host_view_of(slot, ids_));
  }
  return {plan_.row_reads, ids};
}

std::byte* Executor::address_of(std::size_t index) const {
  const Storage& storage = plan_.storages[index];
  switch (storage.kind) {
    case Storage::Kind::kArena:
      return arena_->data() + storage.offset;
    case Storage::Kind::kInput:
      return inputs_.data() + storage.offset;
    case Storage::Kind::kLocal:
      return static_cast<std::byte*>(locals_.view(storage.name).data);
    case Storage::Kind::kConstant:
      return constants_[index].size() > 0 ? constants_[index].data()
                                          : static_cast<std::byte*>(storage.constant.raw());
    default:
      return nullptr;  // the store gives its memory in each step
  }
}

TensorView Executor::view_of(SlotIndex index) const {
  const Slot& slot = plan_.slots[std::size_t(index)];
  std::byte* const start = address_of(std::size_t(slot.storage));
  return {start == nullptr ? nullptr : start + slot.offset, slot.type.dtype, slot.type.shape};
}

TensorView Executor::host_view_of(SlotIndex index, HostCopies& copies) {
  const Slot& slot = plan_.slots[std::size_t(index)];
  const Storage& storage = plan_.storages[std::size_t(slot.storage)];
  if (storage.kind == Storage::Kind::kConstant) {
    return {static_cast<std::byte*>(storage.constant.raw()) + slot.offset, slot.type.dtype,
            slot.type.shape};
  }
  return copies.of(view_of(index), device_);
}

TensorView Executor::view(std::string_view name) const {
  if (const auto input = plan_.inputs.find(name); input != plan_.inputs.end()) {
    TensorView view = view_of(input->second);
    if (host_inputs_.size() > 0) {
      view.data = host_inputs_.data() + (static_cast<std::byte*>(view.data) - inputs_.data());
    }
    return view;
  }
  if (locals_.contains(name)) {
    if (device_.space().host()) return locals_.view(name);
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[feed] local variable {} lies in the memory of {}, where only kernels "
                            "can change it",
                            name, device_.name()));
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("[feed] {} is no input or local variable of this graph", name));
}

Executor::Command Executor::prepare(const Instruction& instruction) {
  Command command;
  command.kind = instruction.kind;
  command.variable = instruction.variable;
  command.streamed = instruction.streamed;
  command.lends = instruction.lends;
  const bool rows = instruction.kind == Instruction::Kind::kReady;
  for (const SlotIndex slot : instruction.inputs) {
    command.inputs.push_back(rows ? host_view_of(slot, command.ids) : view_of(slot));
  }
  for (const SlotIndex slot : instruction.outputs) command.outputs.push_back(view_of(slot));
  if (!instruction.outputs.empty()) {
    command.storage = plan_.slots[std::size_t(instruction.outputs[0])].storage;
  }
  if (instruction.kernel >= 0) {
    const Plan::KernelUse& use = plan_.kernels[std::size_t(instruction.kernel)];
    command.kernel = use.kernel.get();
    command.node = use.node;
    command.scratch = arena_->span().subspan(use.scratch_offset, use.scratch_bytes);
  }
  return command;
}

// Keeps pointers to views in commands_, so the caller makes all commands first.
void Executor::note_store_views() {
  const auto note = [&](SlotIndex index, TensorView& view) {
    const Slot& slot = plan_.slots[std::size_t(index)];
    const Storage::Kind kind = plan_.storages[std::size_t(slot.storage)].kind;
    if (kind == Storage::Kind::kVariable || kind == Storage::Kind::kPlace) {
      store_views_[std::size_t(slot.storage)].push_back({&view, slot.offset});
    }
  };
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    const Instruction& instruction = plan_.instructions[i];
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
      note(instruction.inputs[k], commands_[i].inputs[k]);
    }
    for (std::size_t k = 0; k < instruction.outputs.size(); ++k) {
      note(instruction.outputs[k], commands_[i].outputs[k]);
    }
  }
}

StepHandle& Executor::run(const StepRequest& request) {
  const FlushDenormals flush;
  const AccountScope scope(account_, Activity::kCompute);
  exchange_ = request.kind == StepKind::kTrain ? steps_->exchange() : nullptr;
  // Ends the observation of the step, even if an exception ends the step.
  struct EndOfLook {
    Executor& of;
    ~EndOfLook() { of.end_look(); }
  } const end_of_look{*this};
  while (true) {
    try {
      return run_once(request);
    } catch (const RepeatStep&) {
      sink_ = nullptr;
    }
  }
}

void Executor::end_look() {
  observer_ = nullptr;
  contributions_.clear();
  copying_sinks_.clear();
}

StepHandle& Executor::run_once(const StepRequest& request) {
  if (observer_ != nullptr) show_inputs();
  if (!rows_known_) find_rows(request.identity);
  begin(request);
  run_commands(plan_.prologue, commands_.size(), request.identity);
  results_.refresh(device_);
  const bool needs_norm = plan_.skips_not_finite || steps_->norm_by() == NormBy::kPlan;
  if (!needs_norm && !wants_next_inputs_) return end_early();
  wait_for_device();
  rows_known_ = wants_next_inputs_ && request.fill_next != nullptr && (*request.fill_next)();
  if (rows_known_) {
    StepIdentity next = request.identity;
    ++next.step;
    find_rows(next);
  }
  const AccountScope push(account_, Activity::kPush);
  return steps_->end_step(clip_scale(), rows_known_ ? rows_read_ : std::span<const RowSet>());
}

// Ends the step while the device still computes: the store needs no result of the step, and waits
// for the contributions itself.
StepHandle& Executor::end_early() {
  StepHandle* handle = nullptr;
  {
    const AccountScope push(account_, Activity::kPush);
    handle = &steps_->end_step(1, {});
  }
  wait_for_device();
  return *handle;
}

void Executor::wait_for_device() {
  const DeviceWaitScope wait(account_);
  device_.synchronize();
}

bool Executor::inputs_are_free_early() const {
  const auto kind = [&](SlotIndex slot) {
    return plan_.storages[std::size_t(plan_.slots[std::size_t(slot)].storage)].kind;
  };
  const auto is_input = [&](SlotIndex slot) {
    return slot >= 0 && kind(slot) == Storage::Kind::kInput;
  };
  const auto is_local = [&](SlotIndex slot) { return kind(slot) == Storage::Kind::kLocal; };
  if (std::ranges::any_of(plan_.fetches, is_input) || is_input(plan_.loss)) return false;
  for (const RowReads& reads : plan_.row_reads) {
    if (std::ranges::any_of(reads.ids, is_local)) return false;
  }
  return std::ranges::none_of(
      std::span(plan_.instructions).first(plan_.prologue),
      [&](const Instruction& early) { return std::ranges::any_of(early.inputs, is_local); });
}

void Executor::find_rows(const StepIdentity& identity) {
  if (host_inputs_.size() > 0) {
    device_.upload(inputs_.data(), host_inputs_.data(), host_inputs_.size());
  }
  run_commands(0, plan_.prologue, identity);
  if (!plan_.row_reads.empty()) {
    ids_.refresh(device_);
    wait_for_device();
  }
  rows_read_ = rows_.collect();
}

void Executor::begin(const StepRequest& request) {
  const AccountScope pull(account_, Activity::kPull);
  steps_->begin_step(request.kind, rows_read_,
                     {request.learning_rates, request.examples, request.identity.step});
}

// Returns the commands at `at` that belong to a kernel which waits for input from outside: its
// place, its run and its hand-over. The result has no node if no such kernel is there.
Executor::Awaited::Part Executor::awaited_part(std::size_t at) const {
  const auto is = [&](std::size_t i, Instruction::Kind kind) {
    return i < commands_.size() && commands_[i].kind == kind;
  };
  std::size_t run = at;
  if (is(run, Instruction::Kind::kPlace)) ++run;
  if (!is(run, Instruction::Kind::kRun) || !commands_[run].node->op().first_to_come) return {};
  std::size_t end = run + 1;
  const VariableId variable = commands_[at].variable;
  if (run > at && is(end, Instruction::Kind::kReady) && commands_[end].variable == variable) ++end;
  return {at, end, commands_[run].node};
}

void Executor::find_awaited() {
  for (std::size_t i = plan_.prologue; i < commands_.size();) {
    const Awaited::Part part = awaited_part(i);
    if (part.node == nullptr) {
      ++i;
      continue;
    }
    const bool follows = !awaited_.empty() && awaited_.back().parts.back().end == i &&
                         &awaited_.back().parts.back().node->op() == &part.node->op();
    if (!follows) awaited_.emplace_back();
    awaited_.back().parts.push_back(part);
    i = part.end;
  }
  for (Awaited& awaited : awaited_) {
    awaited.left.reserve(awaited.parts.size());
    awaited.nodes.reserve(awaited.parts.size());
  }
}

void Executor::count_as(Activity wanted, Activity& activity) {
  if (wanted != activity) account_.change_to(activity = wanted);
}

void Executor::run_commands(std::size_t begin, std::size_t end, const StepIdentity& identity) {
  Activity activity = Activity::kCompute;
  std::size_t at = begin;
  for (Awaited& awaited : awaited_) {
    const std::size_t from = awaited.parts.front().begin;
    if (from < at || from >= end) continue;
    run_range(at, from, activity, identity);
    run_awaited(awaited, activity, identity);
    at = awaited.parts.back().end;
  }
  run_range(at, end, activity, identity);
  count_as(Activity::kCompute, activity);
}

void Executor::run_range(std::size_t begin, std::size_t end, Activity& activity,
                         const StepIdentity& identity) {
  for (std::size_t i = begin; i < end; ++i) {
    count_as(activity_of(commands_[i].kind), activity);
    run_command(commands_[i], identity);
  }
}

void Executor::run_awaited(Awaited& awaited, Activity& activity, const StepIdentity& identity) {
  awaited.left.assign(awaited.parts.begin(), awaited.parts.end());
  awaited.nodes.clear();
  for (const Awaited::Part& part : awaited.parts) awaited.nodes.push_back(part.node);
  while (!awaited.left.empty()) {
    count_as(Activity::kCompute, activity);
    const std::size_t next = awaited.nodes.front()->op().first_to_come(awaited.nodes);
    const Awaited::Part part = awaited.left.at(next);
    awaited.left.erase(awaited.left.begin() + std::ptrdiff_t(next));
    awaited.nodes.erase(awaited.nodes.begin() + std::ptrdiff_t(next));
    run_range(part.begin, part.end, activity, identity);
  }
}

void Executor::run_command(Command& command, const StepIdentity& identity) {
  switch (command.kind) {
    case Instruction::Kind::kNeed:
      return give_address(command.storage, steps_->need(command.variable));
    case Instruction::Kind::kPlace:
      if (command.streamed) {
        sink_ = &steps_->sink(command.variable);
        if (observer_ != nullptr) sink_ = &observed(*sink_, command);
        return;
      }
      return give_place(command);
    case Instruction::Kind::kRun:
      return run_kernel(command, identity);
    case Instruction::Kind::kReady:
      return hand_over(command);
    case Instruction::Kind::kCopy:
      device_.copy(command.outputs[0].data, command.inputs[0].data, command.outputs[0].bytes());
  }
}

void Executor::run_kernel(Command& command, const StepIdentity& identity) {
  void* lent = nullptr;
  command.kernel->run({.inputs = command.inputs,
                       .outputs = command.outputs,
                       .scratch = command.scratch,
                       .step = identity,
                       .sink = command.streamed ? sink_ : nullptr,
                       .lent = command.lends ? &lent : nullptr,
                       .exchange = exchange_});
  if (command.lends) lent_[command.variable] = static_cast<const float*>(lent);
  if (lent != nullptr) {
    TensorView contribution = command.outputs[0];
    contribution.data = lent;
    give_address(command.storage, contribution);
    if (observer_ != nullptr) contributions_[command.variable] = contribution;
  }
  if (observer_ != nullptr) show_output(command);
}

void Executor::give_address(int storage, const AsyncView& memory) {
  if (!memory.event.empty()) device_.wait(memory.event);
  void* const address = memory.view.data;
  for (const StoreView& part : store_views_[std::size_t(storage)]) {
    part.view->data = address == nullptr ? nullptr : static_cast<std::byte*>(address) + part.offset;
  }
}

void Executor::give_place(const Command& command) {
  const AsyncView place = steps_->place(command.variable);
  if (observer_ != nullptr) contributions_[command.variable] = place.view;
  give_address(command.storage, place);
}

// Shows the inputs when the step begins, since those of the next step may be filled before it ends.
void Executor::show_inputs() {
  contributions_.clear();
  copying_sinks_.clear();
  observer_->begin_step();
  for (const auto& [name, slot] : plan_.inputs) observer_->input(name, view(name));
}

void Executor::show_output(const Command& command) {
  if (command.outputs.empty() || command.outputs[0].data == nullptr) return;
  if (!observer_->wants(*command.node)) return;
  show(command.outputs[0],
       [&](const TensorView& value) { observer_->computed(*command.node, value); });
}

void Executor::show_contribution(VariableId variable, std::optional<std::int64_t> rows) {
  const auto found = contributions_.find(variable);
  if (observer_ == nullptr || !observer_->wants_contributions() || found == contributions_.end()) {
    return;
  }
  TensorView contribution = found->second;
  if (rows) {
    const std::span<const std::int64_t> all = contribution.shape.dims();
    std::vector<std::int64_t> dimensions(all.begin(), all.end());
    dimensions.at(0) = *rows;
    contribution.shape = Shape(dimensions);
  }
  show(contribution, [&](const TensorView& value) { observer_->contributed(variable, value); });
}

// Passes the values of `view` to `to` in host memory, once the device has computed them.
void Executor::show(const TensorView& view, const std::function<void(const TensorView&)>& to) {
  HostCopies copies;
  const TensorView seen = view.shape.elements() == 0 ? view : copies.of(view, device_);
  copies.refresh(device_);
  wait_for_device();
  to(seen);
}

OutputSink& Executor::observed(OutputSink& sink, const Command& command) {
  auto copying = std::make_unique<CopyingSink>(sink, command.outputs[0]);
  contributions_[command.variable] = copying->view();
  return *copying_sinks_.emplace_back(std::move(copying));
}

void Executor::hand_over(const Command& command) {
  if (command.inputs.empty()) {
    show_contribution(command.variable, {});
    const auto lent = lent_.find(command.variable);
    return steps_->ready(command.variable, {.lent = lent == lent_.end() ? nullptr : lent->second},
                         device_.record());
  }
  command.ids.refresh(device_);
  const Event done = device_.record();
  if (!done.empty()) {
    const DeviceWaitScope wait(account_);
    done.synchronize();
  }
  const TensorView& ids = command.inputs[0];
  const std::int64_t count = *command.inputs[1].as<std::int32_t>();
  PACELINE_CHECK(count >= 0 && count <= ids.shape.elements());
  show_contribution(command.variable, count);
  steps_->ready(command.variable, {true, {ids.as<std::int32_t>(), std::size_t(count)}}, done);
}

float Executor::clip_scale() const {
  if (!plan_.clipped()) return 1;
  if (plan_.skips_not_finite && !std::isfinite(global_norm())) return kSkipContribution;
  if (steps_->norm_by() == NormBy::kStore) return 1;
  const double norm = global_norm();
  return norm > plan_.clip_norm ? float(plan_.clip_norm / norm) : 1.0f;
}

double Executor::loss() const {
  PACELINE_CHECK(plan_.loss >= 0);
  return scalar_of(loss_);
}

double Executor::global_norm() const {
  PACELINE_CHECK(plan_.global_norm >= 0);
  return scalar_of(global_norm_);
}

}  // namespace paceline
