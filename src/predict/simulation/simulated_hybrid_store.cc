#include "predict/simulation/simulated_hybrid_store.h"

#include <utility>

namespace paceline {

SimulatedHybridStore::SimulatedHybridStore(const HybridPlaces& places, SimulatedWorker& sparse,
                                           SimulatedMember& dense, bool clipped)
    : places_(places), sparse_(sparse), dense_(dense), clipped_(clipped) {
  const User part{
      .changed =
          [this] {
            look();
            user().changed();
          },
      .spent = [this](double SpentSeconds::*on, double seconds) { user().spent(on, seconds); }};
  sparse.set_user(part);
  dense.set_user(part);
  dense.wait_for_receipts([this](const Done& apply) { commit(apply); });
}

bool SimulatedHybridStore::may_begin(StepKind kind) {
  if (!dense_.may_begin(kind) || !sparse_.may_begin(kind)) return false;
  if (!std::exchange(asked_, true)) sparse_.await_round(0);
  return sparse_.round_is_open();
}

void SimulatedHybridStore::begin_step(StepKind kind, int plan) {
  dense_.begin_step(kind, plan);
  sparse_.begin_step(kind, plan);
}

void SimulatedHybridStore::end_step(const Done& done) {
  sparse_.end_step([] {});
  awaits_receipt_ = true;
  dense_.end_step(done);
  look();
}

// The lowest of several members lets the others tell ps 0.
void SimulatedHybridStore::commit(const Done& apply) {
  if (dense_.contributors().size() == 1 || dense_.contributors().front() != sparse_.index()) {
    sparse_.commit(dense_.contributors());
  }
  if (!clipped_) return apply();
  apply_ = apply;
  look();
}

void SimulatedHybridStore::look() {
  if (awaits_receipt_ && sparse_.is_given()) {
    awaits_receipt_ = false;
    dense_.confirm_receipt();
  }
  if (apply_ != nullptr && sparse_.has_scale()) std::exchange(apply_, nullptr)();
}

}  // namespace paceline
