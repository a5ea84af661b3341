// The steps of one plan whose variables are kept by two stores.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// Where each variable lies: the store that keeps it, and its id in that store.
class HybridPlaces {
 public:
  explicit HybridPlaces(std::span<const VariableSpec> variables);
  bool is_sparse(VariableId variable) const { return places_[std::size_t(variable)].sparse; }
  VariableId there(VariableId variable) const { return places_[std::size_t(variable)].there; }
  /// The variables of one store, by their id in that store.
  const std::vector<VariableId>& of(bool sparse) const { return sparse ? sparse_ : dense_; }

 private:
  struct Place {
    bool sparse = false;
    VariableId there = 0;
  };
  std::vector<Place> places_;
  std::vector<VariableId> sparse_, dense_;
};

/// The steps of both parts. In each step the dense part begins first, since only members of the
/// all-reduce contribute to a round. At the end of a step the sparse contribution is sent before
/// the dense part waits for the commit.
class HybridSteps : public StoreSteps {
 public:
  HybridSteps(const HybridPlaces& places, std::unique_ptr<StoreSteps> sparse,
              std::unique_ptr<StoreSteps> dense)
      : places_(places), sparse_(std::move(sparse)), dense_(std::move(dense)) {}

  NormBy norm_by() const override { return NormBy::kStore; }
  void count_waits(StepAccount& account) override {
    sparse_->count_waits(account);
    dense_->count_waits(account);
  }
  bool wants_next_rows() const override { return sparse_->wants_next_rows(); }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override {
    return part(variable).need(places_.there(variable));
  }
  AsyncView place(VariableId variable) override {
    return part(variable).place(places_.there(variable));
  }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    part(variable).ready(places_.there(variable), contribution, event);
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  /// Asks the members first, and then the ps tasks: the step may have counted for the members but
  /// on no ps.
  struct Handle : StepHandle {
    std::int64_t global_step() override;
    StepHandle *of_ps = nullptr, *of_members = nullptr;
  };
  StoreSteps& part(VariableId variable) const {
    return places_.is_sparse(variable) ? *sparse_ : *dense_;
  }
  std::span<const float> rates_of(bool sparse, std::span<const float> all,
                                  std::vector<float>& rates) const;
  std::span<const RowSet> sparse_rows(std::span<const RowSet> rows);

  const HybridPlaces& places_;
  const std::unique_ptr<StoreSteps> sparse_, dense_;
  std::vector<float> sparse_rates_, dense_rates_;
  std::vector<RowSet> rows_;
  Handle handle_;
};

}  // namespace paceline
