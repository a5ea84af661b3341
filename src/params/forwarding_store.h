// A store over another one. It forwards every call that it does not override.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// `Store` is ParameterStore, or a class derived from it.
template <typename Store>
class ForwardingStore : public Store {
 public:
  /// The store below must outlive it.
  explicit ForwardingStore(ParameterStore& below) : told_(below) {}

  std::span<const VariableSpec> variables() const override { return told_.variables(); }
  void write(std::vector<VariableState> states, std::int64_t global_step) override {
    told_.write(std::move(states), global_step);
  }
  bool initialised() const override { return told_.initialised(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override {
    return told_.read(variables);
  }
  std::int64_t global_step() const override { return told_.global_step(); }
  StoreAccount account() const override { return told_.account(); }
  std::vector<StoreLink> links() const override { return told_.links(); }
  Staleness staleness() const override { return told_.staleness(); }
  std::int64_t skipped() const override { return told_.skipped(); }

 private:
  ParameterStore& told_;
};

}  // namespace paceline
