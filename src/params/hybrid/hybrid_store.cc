// The members of the all-reduce decide about both parts, and ps 0 makes sure that a step counts in
// both or in neither (params/round_fence.h). A member says that its sums are whole only once ps 0
// has confirmed its sparse contribution (`given`), so that what the members commit is on every ps.
// Each member then names the contributors to ps 0 (`committed`). The lowest member commits first,
// but lets the others tell ps 0 first (PsRoundFence::tell_commit). The RoundCoordinator of ps 0
// closes a round once, with these contributors, and never by itself.
//
// A worker begins again as a joiner (kAborted) if its group had committed its contribution but ps 0
// dropped it, or counted it with other contributors; `step_done` tells the worker so. A member
// hands its values on only once it knows that they are those of the closed rounds. If two groups
// meet, the group goes on whose steps ps 0 has counted, even if the other group has the later
// epoch. Groups that belong to different processes of ps 0 do not meet.
//
// Why ps 0 does not decide first: members would then reduce only after ps 0 has closed the round.
// The reduction could not begin in the backward pass, and after a death during the reduction only
// the sparse part would count.
#include "params/hybrid/hybrid_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "params/forwarding_control.h"
#include "params/forwarding_store.h"
#include "params/hybrid/hybrid_steps.h"
#include "params/round_fence.h"

namespace paceline {
namespace {

// The control of a job whose variables are kept by two stores.

/// Most questions go to the ps tasks, since these know all workers. Both stores are told when this
/// worker is done, ends the training of all, or leaves.
class HybridControl : public ForwardingControl {
 public:
  HybridControl(std::shared_ptr<JobControl> sparse, std::shared_ptr<JobControl> dense)
      : ForwardingControl(std::move(sparse)), dense_(std::move(dense)) {}

  void set_done() override {
    dense_->set_done();
    below_->set_done();
  }
  bool wait_all_done(Deadline deadline) override {
    const bool dense = dense_->wait_all_done(deadline);
    return below_->wait_all_done(deadline) && dense;
  }
  void end_training() override {
    dense_->end_training();
    below_->end_training();
  }
  bool training_ended() const override {
    return below_->training_ended() || dense_->training_ended();
  }
  void goodbye() override {
    dense_->goodbye();
    below_->goodbye();
  }
  /// The worker that founds the all-reduce writes the values of both stores, so the dense store
  /// answers.
  bool was_initialised() const override { return dense_->was_initialised(); }
  void wait_initialised() override {
    below_->wait_initialised();
    dense_->wait_initialised();
  }
  void restore(std::span<const TaskState> states) override {
    below_->restore(states);
    dense_->restore(states);
  }
  std::int64_t next_step() const override { return below_->next_step(); }
  std::optional<TaskState> restored() const override { return below_->restored(); }
  void send_state(const TaskState& state) override { below_->send_state(state); }

 private:
  const std::shared_ptr<JobControl> dense_;
};

class HybridStore : public ForwardingStore<SavableStore> {
 public:
  HybridStore(std::shared_ptr<SavableStore> sparse, std::shared_ptr<SavableStore> dense,
              RoundFence& rounds, std::vector<VariableSpec> variables)
      : ForwardingStore(*sparse),
        variables_(std::move(variables)),
        places_(variables_),
        rounds_(rounds),
        sparse_(std::move(sparse)),
        dense_(std::move(dense)) {}

  std::span<const VariableSpec> variables() const override { return variables_; }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override;
  void write(std::vector<VariableState> states, std::int64_t global_step) override;
  bool initialised() const override { return sparse_->initialised() && dense_->initialised(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override;
  StoreAccount account() const override;
  std::vector<StoreLink> links() const override;

  std::vector<std::string> prepare_saving(const std::string& folder) override;
  void mark() override;
  SavedShards write_shards(const std::string& folder) override;

 private:
  SavableStore& part(bool sparse) const { return sparse ? *sparse_ : *dense_; }

  const std::vector<VariableSpec> variables_;
  const HybridPlaces places_;
  RoundFence& rounds_;
  const std::shared_ptr<SavableStore> sparse_, dense_;  // the dense store calls the sparse one
};

std::unique_ptr<StoreSteps> HybridStore::bind(const PlanBinding& plan, float clip_norm) {
  PlanBinding sparse, dense;
  for (PlanBinding::Use use : plan.uses) {
    PlanBinding& its = places_.is_sparse(use.variable) ? sparse : dense;
    use.variable = places_.there(use.variable);
    its.uses.push_back(use);
  }
  return std::make_unique<HybridSteps>(places_, sparse_->bind(sparse, clip_norm),
                                       dense_->bind(dense, clip_norm));
}

// The dense values are written last: the members begin once they have them, and must then find the
// sparse values on the ps tasks.
void HybridStore::write(std::vector<VariableState> states, std::int64_t global_step) {
  std::vector<VariableState> sparse, dense;
  for (VariableState& state : states) {
    std::vector<VariableState>& its = places_.is_sparse(state.variable) ? sparse : dense;
    state.variable = places_.there(state.variable);
    its.push_back(std::move(state));
  }
  sparse_->write(std::move(sparse), global_step);
  dense_->write(std::move(dense), global_step);
}

std::vector<VariableState> HybridStore::read(std::span<const VariableId> variables) {
  rounds_.wait_closed();
  std::vector<VariableState> states;
  for (const bool is_sparse : {true, false}) {
    std::vector<VariableId> there;
    for (const VariableId variable : variables) {
      if (places_.is_sparse(variable) == is_sparse) there.push_back(places_.there(variable));
    }
    if (there.empty()) continue;
    for (VariableState& state : part(is_sparse).read(there)) {
      state.variable = places_.of(is_sparse)[std::size_t(state.variable)];
      states.push_back(std::move(state));
    }
  }
  const auto asked = [&](const VariableState& state) {
    return std::ranges::find(variables, state.variable) - variables.begin();
  };
  std::ranges::sort(states, {}, asked);
  return states;
}

StoreAccount HybridStore::account() const {
  StoreAccount sum = sparse_->account();
  const StoreAccount dense = dense_->account();
  sum.bytes_sent += dense.bytes_sent;
  sum.bytes_received += dense.bytes_received;
  sum.transfer += dense.transfer;
  return sum;
}

std::vector<StoreLink> HybridStore::links() const {
  std::vector<StoreLink> links = sparse_->links();
  for (StoreLink& link : dense_->links()) links.push_back(std::move(link));
  return links;
}

std::vector<std::string> HybridStore::prepare_saving(const std::string& folder) {
  std::vector<std::string> lines = sparse_->prepare_saving(folder);
  for (std::string& line : dense_->prepare_saving(folder)) lines.push_back(std::move(line));
  return lines;
}

// No round closes while the values are marked, since this worker has not contributed to the next
// round. If the other workers went on without this worker, write_shards() finds that the two stores
// are at different global steps.
void HybridStore::mark() {
  rounds_.wait_closed();
  dense_->mark();
  sparse_->mark();
}

SavedShards HybridStore::write_shards(const std::string& folder) {
  SavedShards saved = sparse_->write_shards(folder);
  SavedShards dense = dense_->write_shards(folder);
  if (saved.global_step != dense.global_step) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the ps tasks were at global step {} and this worker at {}: the others "
                            "went on without it",
                            saved.global_step, dense.global_step));
  }
  std::ranges::move(dense.files, std::back_inserter(saved.files));
  std::vector<SavedVariable> variables(variables_.size());
  for (const bool is_sparse : {true, false}) {
    const std::vector<VariableId>& of_part = places_.of(is_sparse);
    for (std::size_t there = 0; there < of_part.size(); ++there) {
      variables[std::size_t(of_part[there])] =
          std::move((is_sparse ? saved : dense).variables[there]);
    }
  }
  saved.variables = std::move(variables);
  return saved;
}

}  // namespace

JoinedStrategy with_both(JoinedStrategy sparse, JoinedStrategy dense, RoundFence& rounds,
                         std::vector<VariableSpec> variables) {
  auto control = std::make_shared<HybridControl>(sparse.control, dense.control);
  return {std::make_shared<HybridStore>(std::move(sparse.store), std::move(dense.store), rounds,
                                        std::move(variables)),
          std::move(control)};
}

std::vector<VariableSpec> part_of(const std::vector<VariableSpec>& variables, bool sparse) {
  std::vector<VariableSpec> part;
  std::ranges::copy_if(variables, std::back_inserter(part),
                       [sparse](const VariableSpec& spec) { return spec.sparse == sparse; });
  return part;
}

}  // namespace paceline
