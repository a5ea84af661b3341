// The plan decides when the store is told of each contribution: after every kernel of the step that
// reads the variable, so that an update in place never changes a value that the step still needs.
//
// A large weight's gradient need not exist as a whole (can_stream). If the step does not clip,
// nothing reads the variable after the kernel that makes the gradient, and only the store wants the
// gradient, then that kernel writes panels of whole rows into memory of its thread and gives each
// panel to the store's sink, where LocalStore applies the rule to it. --no-fused-update turns this
// off and changes no bit.
//
// A kernel that stands for a gradient of other code leaves the gradient where that code put it
// (can_lend), so that a process that applies the rule itself copies nothing.
#include "exec/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "base/clock.h"
#include "exec/node_order.h"
#include "exec/plan_roots.h"
#include "exec/value_memory.h"
#include "exec/variable_reads.h"
#include "graph/open_graph.h"
#include "kernels/evaluate.h"
#include "paceline/op.h"

namespace paceline {
namespace {

struct PlannedCopy {
  SlotIndex from, to;
};

/// A contribution: where it is written, and when it is handed over. Before position `settled`,
/// every kernel that reads the variable or the contribution has run.
struct PlacedUpdate {
  PlannedUpdate root;
  SlotIndex place = -1;
  int written_by = -1;  // position of its kernel; −1: a copy writes it at `settled`
  int settled = 0;
  bool streamed = false;  // goes to the store's sink while its kernel makes it
  bool lends = false;     // the kernel may leave it in memory of its own
};

/// The parts of a step, each in execution order.
struct StepSchedule {
  const NodeOrder& order;
  std::span<const VariableReads> reads;
  std::span<const PlacedUpdate> updates;
  std::span<const PlannedCopy> last_copies;  // made at the end, before anything changes
  std::span<const PlannedCopy> assignments;  // made after last_copies
};

using Kind = Instruction::Kind;

// Events by position; events at one position keep the order of the schedule.
template <typename T>
using Events = std::map<int, std::vector<const T*>>;

template <typename T>
std::span<const T* const> events_at(const Events<T>& events, int position) {
  const auto found = events.find(position);
  return found == events.end() ? std::span<const T* const>() : found->second;
}

class InstructionWriter {
 public:
  InstructionWriter(const StepSchedule& step, const ValueMemory& memory, Plan& plan)
      : step_(step), memory_(memory), plan_(plan) {
    for (const PlacedUpdate& update : step.updates) {
      settled_[update.settled].push_back(&update);
      written_[update.written_by].push_back(&update);
    }
    for (const VariableReads& read : step.reads) {
      const int storage = memory.storage_of(read.node->output(0));
      first_reads_[memory.life(storage).first_read].push_back(&read);
    }
  }

  // Contributions that are settled at the end wait for the last copies, which may read variables.
  void write() {
    const int end = memory_.end(), prologue = int(step_.order.prologue);
    for (int position = 0; position < end; ++position) {
      if (position == prologue) plan_.prologue = plan_.instructions.size();
      write_contribution_copies(position);
      write_ready(position);
      write_needs(position);
      write_node(position);
    }
    if (end == prologue) plan_.prologue = plan_.instructions.size();
    write_needs(end);
    for (const PlannedCopy& copy : step_.last_copies) write_copy(copy);
    write_contribution_copies(end);
    for (const PlannedCopy& copy : step_.assignments) write_copy(copy);
    write_ready(end);
  }

 private:
  void write_contribution_copies(int position) {
    for (const PlacedUpdate* update : events_at(settled_, position)) {
      if (update->written_by >= 0) continue;
      write_place(*update);
      write_copy({memory_.slot(update->root.written()), update->place});
    }
  }

  void write_ready(int position) {
    for (const PlacedUpdate* update : events_at(settled_, position)) {
      Instruction ready{Kind::kReady, update->root.variable, -1, {}, {}};
      if (update->root.sparse()) {
        ready.inputs = {memory_.slot(update->root.ids), memory_.slot(update->root.count)};
      }
      plan_.instructions.push_back(std::move(ready));
    }
  }

  void write_needs(int position) {
    for (const VariableReads* read : events_at(first_reads_, position)) {
      const Value variable = read->node->output(0);
      plan_.instructions.push_back({Kind::kNeed, read->variable, -1, {}, {memory_.slot(variable)}});
    }
  }

  void write_node(int position) {
    const Node& node = *step_.order.nodes[std::size_t(position)];
    Instruction run{Kind::kRun, -1, position, {}, {}};
    for (const PlacedUpdate* update : events_at(written_, position)) {
      write_place(*update);
      run.streamed = update->streamed;
      run.lends = update->lends;
      if (run.lends) run.variable = update->root.variable;
    }
    for (const Value& input : node.inputs()) run.inputs.push_back(memory_.slot(input));
    for (int i = 0; i < int(node.outputs().size()); ++i) {
      run.outputs.push_back(memory_.slot(node.output(i)));
    }
    plan_.instructions.push_back(std::move(run));
  }

  void write_place(const PlacedUpdate& update) {
    plan_.instructions.push_back(
        {Kind::kPlace, update.root.variable, -1, {}, {update.place}, update.streamed});
  }

  void write_copy(const PlannedCopy& copy) {
    plan_.instructions.push_back({Kind::kCopy, -1, -1, {copy.from}, {copy.to}});
  }

  const StepSchedule& step_;
  const ValueMemory& memory_;
  Plan& plan_;
  Events<PlacedUpdate> settled_, written_;
  Events<VariableReads> first_reads_;
};

/// Turns a schedule into instructions, with the store's calls and the copies between the kernels:
/// fills plan.instructions and plan.prologue. `memory` must know all reads.
void write_instructions(const StepSchedule& step, const ValueMemory& memory, Plan& plan) {
  InstructionWriter(step, memory, plan).write();
}

// Decides where every value lives and when every contribution is handed over.
class PlanMaker {
 public:
  PlanMaker(const PlanRequest& request, std::span<const VariableSpec> specs, Device& device)
      : request_(request),
        specs_(specs),
        variables_(specs),
        device_(device),
        plan_(std::make_unique<Plan>()) {}

  std::unique_ptr<Plan> make() {
    rewrite_graph();
    // Without a size, the large prime that stands for an open dimension would count as its size.
    check_sized(open_inputs(*plan_->graph), {});
    reads_ = variable_reads(*plan_->graph, roots_.values(), variables_);
    reads_of_ = by_variable(reads_);
    const std::vector<Value> early = sparse_ids(reads_, specs_);
    order_ = order_nodes(*plan_->graph, roots_, reads_, early);
    memory_ = std::make_unique<ValueMemory>(*plan_->graph, order_, variables_);
    keep_roots();
    plan_assignments();
    make_kernels();
    settle_updates();
    bind_variables();
    find_inputs();
    memory_->share_in_place();
    note_scratch();
    write_instructions({order_, reads_, updates_, last_copies_, assignments_}, *memory_, *plan_);
    memory_->lay_out(*plan_);
    note_spaces();
    return std::move(plan_);
  }

 private:
  void rewrite_graph() {
    const PlanRoots roots = PlanRoots::of(request_, variables_);
    // Naive kernels fold constants, because the plan's device may be simulated and compute nothing.
    RealClock clock;
    const std::unique_ptr<Device> folder = make_device({.kind = "naive"}, clock);
    KernelConstantEvaluator evaluator(*folder);
    const std::vector<Value> values = roots.values();
    RewrittenGraph rewritten =
        rewrite(*request_.graph, values, request_.run_assignments, request_.rewrite, &evaluator);
    plan_->graph = std::move(rewritten.graph);
    roots_ = roots.with_values(rewritten.roots);
  }

  // A value that is read after the step is copied if the store or an assignment may change it by
  // then.
  SlotIndex kept(const Value& value) {
    const int storage = memory_->storage_of(value);
    const Storage::Kind kind = memory_->storage(storage).kind;
    if (kind == Storage::Kind::kVariable || kind == Storage::Kind::kLocal) {
      const SlotIndex copy = memory_->add_kept(value.type(), memory_->end());
      last_copies_.push_back({memory_->slot(value), copy});
      memory_->read_at(storage, memory_->end());
      return copy;
    }
    keep(storage);
    return memory_->slot(value);
  }

  void keep(int storage) {
    memory_->read_at(storage, memory_->end());
    kept_.insert(storage);
  }
  bool is_kept(int storage) const { return kept_.contains(storage); }

  void keep_roots() {
    for (const Value& fetch : roots_.fetches) plan_->fetches.push_back(kept(fetch));
    if (roots_.loss) plan_->loss = kept(roots_.loss);
    if (roots_.global_norm) {
      plan_->global_norm = kept(roots_.global_norm);
      const Training& training = *request_.training;
      plan_->skips_not_finite = training.skip_not_finite;
      // An infinite limit scales nothing, but contributions still wait for the end of the step.
      plan_->clip_norm =
          training.clip_norm > 0 ? training.clip_norm : std::numeric_limits<float>::infinity();
    }
  }

  // All assignments happen at the end of the step. A local that another assignment reads is copied
  // first.
  void plan_assignments() {
    for (const Graph::Assignment& assignment : plan_->graph->assignments()) {
      const int storage = memory_->storage_of(assignment.value);
      SlotIndex from = memory_->slot(assignment.value);
      if (memory_->storage(storage).kind == Storage::Kind::kLocal) {
        const SlotIndex aside = memory_->add_kept(assignment.value.type(), memory_->end());
        last_copies_.push_back({from, aside});
        from = aside;
      }
      keep(storage);
      assignments_.push_back({from, memory_->slot(assignment.local)});
    }
  }

  void settle_updates() {
    for (const PlannedUpdate& root : roots_.updates) updates_.push_back(planned(root));
    for (PlacedUpdate& update : updates_) settle(update);
    for (PlacedUpdate& update : updates_) {
      update.streamed = can_stream(update);
      update.lends = can_lend(update);
    }
  }

  // Returns whether the kernel may leave the contribution in its own memory. No other kernel may
  // then write to that memory in place.
  bool can_lend(const PlacedUpdate& update) const {
    if (!request_.lend_updates || !device_.space().host() || update.streamed) return false;
    if (update.root.sparse() || update.written_by < 0) return false;
    const Value written = update.root.written();
    const int storage = memory_->storage_of(written);
    const Node& node = *plan_->kernels[std::size_t(update.written_by)].node;
    const Value output = node.output(0);
    return node.op().lends && written.dtype() == DType::kFloat32 &&
           memory_->storage_of(output) == storage && memory_->is_whole(output) &&
           memory_->life(storage).last_write == update.written_by;
  }

  // Returns whether the contribution can go to the store's sink. The host applies the rule while
  // the kernel runs, so from then on nothing may read the variable. Only the store may want the
  // contribution, since the rule takes it in parts.
  bool can_stream(const PlacedUpdate& update) {
    if (!device_.space().host()) return false;
    if (!request_.stream_updates || roots_.global_norm || update.written_by < 0) return false;
    const Value written = update.root.written();
    const int storage = memory_->storage_of(written);
    const Plan::KernelUse& use = plan_->kernels[std::size_t(update.written_by)];
    if (update.root.sparse() || memory_->life(storage).is_read()) return false;
    if (specs_[std::size_t(update.root.variable)].rule.whole()) return false;
    const Value output = use.node->output(0);
    if (storage != memory_->storage_of(output) || !memory_->is_whole(output)) return false;
    if (last_use_of(update.root.variable) >= update.written_by) return false;
    return use.kernel->stream_output();
  }

  // Finds the place of a contribution. A kernel can write straight into it if the kernel's output
  // is memory of the step, is wanted as a whole, and is not read after the contribution is handed
  // over.
  PlacedUpdate planned(const PlannedUpdate& root) {
    PlacedUpdate update{root};
    const Value value = root.written();
    const int storage = memory_->storage_of(value);
    const int written_by = memory_->life(storage).first_write;
    if (memory_->storage(storage).kind == Storage::Kind::kArena && memory_->is_whole(value) &&
        !is_kept(storage) && written_by >= int(order_.prologue)) {
      memory_->give_place(storage, root.variable);
      update.place = memory_->slot(value);
      update.written_by = written_by;
      return update;
    }
    Storage place;
    place.kind = Storage::Kind::kPlace;
    place.variable = root.variable;
    update.place = memory_->add(value.type(), place, -1);
    // If the value lies in another variable or contribution, that variable or contribution is
    // handed over only after this copy.
    const Storage::Kind kind = memory_->storage(storage).kind;
    if (kind == Storage::Kind::kVariable || kind == Storage::Kind::kPlace) {
      memory_->read_at(storage, memory_->end());
    }
    return update;
  }

  // Returns the last position at which the variable's value is used; −1 when the graph does not
  // read the variable.
  int last_use_of(VariableId variable) const {
    const auto read = reads_of_.find(variable);
    if (read == reads_of_.end()) return -1;
    return memory_->life(memory_->storage_of(read->second->node->output(0))).last();
  }

  void settle(PlacedUpdate& update) {
    int last = memory_->life(memory_->storage_of(update.root.written())).last();
    last = std::max(last, last_use_of(update.root.variable));
    for (const Value& value : {update.root.ids, update.root.count}) {
      if (!value) continue;
      last = std::max(last, memory_->life(memory_->storage_of(value)).last_write);
      // The store may read the ids until the step ends.
      memory_->read_at(memory_->storage_of(value), memory_->end());
    }
    update.settled = std::clamp(last + 1, int(order_.prologue), memory_->end());
    if (update.written_by < 0) {
      memory_->read_at(memory_->storage_of(update.root.written()), update.settled);
    }
  }

  void bind_variables() {
    std::vector<const VariableReads*> by_need;
    for (const VariableReads& read : reads_) by_need.push_back(&read);
    const auto first_read = [&](const VariableReads* read) {
      return memory_->life(memory_->storage_of(read->node->output(0))).first_read;
    };
    std::ranges::stable_sort(by_need, {}, first_read);
    for (const VariableReads* read : by_need) {
      if (memory_->life(memory_->storage_of(read->node->output(0))).is_read()) bind(*read);
    }
    std::map<VariableId, std::size_t> uses;
    for (std::size_t i = 0; i < plan_->binding.uses.size(); ++i) {
      uses.emplace(plan_->binding.uses[i].variable, i);
    }
    for (const PlacedUpdate& update : updates_) {
      const auto [known, is_new] = uses.emplace(update.root.variable, plan_->binding.uses.size());
      if (is_new) plan_->binding.uses.push_back({.variable = update.root.variable});
      PlanBinding::Use* use = &plan_->binding.uses[known->second];
      use->updated = true;
      use->streamed = update.streamed;
      if (update.root.sparse()) {
        use->most_rows = std::max(use->most_rows, update.root.rows.shape()[0]);
      }
    }
  }

  void bind(const VariableReads& read) {
    const ValueMemory::Life& life = memory_->life(memory_->storage_of(read.node->output(0)));
    PlanBinding::Use use{.variable = read.variable, .reread = life.last_read > life.first_read};
    const VariableSpec& spec = specs_[std::size_t(read.variable)];
    if (spec.sparse) {
      RowReads rows{read.variable, spec.shape[0], read.as_a_whole, {}};
      for (const Value& ids : read.ids) {
        use.most_rows += ids.shape().elements();
        if (read.as_a_whole) continue;
        rows.ids.push_back(memory_->slot(ids));
      }
      use.most_rows = read.as_a_whole ? rows.rows : std::min(use.most_rows, rows.rows);
      plan_->row_reads.push_back(std::move(rows));
    }
    plan_->binding.uses.push_back(use);
  }

  // The caller can still feed inputs that the rewritten graph does not use.
  void find_inputs() {
    std::map<std::string_view, const Node*> left;
    for (const auto& node : plan_->graph->nodes()) left[node->name()] = node.get();
    for (const auto& node : request_.graph->nodes()) {
      if (node->op().name != "input") continue;
      const auto found = left.find(node->name());
      Storage unread;
      unread.kind = Storage::Kind::kInput;
      plan_->inputs[node->name()] = found != left.end()
                                        ? memory_->slot(found->second->output(0))
                                        : memory_->add(node->outputs()[0], unread, -1);
    }
  }

  void make_kernels() {
    const auto add_flops = [](double sum, const Node* node) {
      return sum + node->op().cost(*node).flops;
    };
    device_.begin_plan(std::accumulate(order_.nodes.begin(), order_.nodes.end(), 0.0, add_flops));
    plan_->kernels.reserve(order_.nodes.size());
    for (const Node* node : order_.nodes) {
      plan_->kernels.push_back({device_.make_kernel(*node), node, 0, 0});
    }
  }

  void note_spaces() {
    for (Storage& storage : plan_->storages) {
      if (storage.kind != Storage::Kind::kConstant) storage.space = device_.space();
    }
  }

  // Called after settle_updates(), since the scratch of a kernel depends on where its output goes.
  void note_scratch() {
    for (Plan::KernelUse& use : plan_->kernels) use.scratch_bytes = use.kernel->scratch_bytes();
  }

  const PlanRequest& request_;
  std::span<const VariableSpec> specs_;
  const VariableIds variables_;
  Device& device_;
  std::unique_ptr<Plan> plan_;
  PlanRoots roots_;
  std::vector<VariableReads> reads_;
  std::map<VariableId, const VariableReads*> reads_of_;
  NodeOrder order_;
  std::unique_ptr<ValueMemory> memory_;
  std::set<int> kept_;  // storages that are read after the step
  std::vector<PlannedCopy> last_copies_, assignments_;
  std::vector<PlacedUpdate> updates_;
};

}  // namespace

std::unique_ptr<Plan> make_plan(const PlanRequest& request, std::span<const VariableSpec> specs,
                                Device& device) {
  return PlanMaker(request, specs, device).make();
}

}  // namespace paceline
