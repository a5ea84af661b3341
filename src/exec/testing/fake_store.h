// For tests of src/exec: a store that records its calls, and applies plain SGD with rate 1 when a
// contribution is ready.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/parameter_store.h"
#include "paceline/tensor.h"

namespace paceline {

class FakeSteps : public StoreSteps {
 public:
  FakeSteps(std::span<const VariableSpec> specs, std::map<std::string, Tensor>& values,
            std::vector<std::string>* calls = nullptr)
      : specs_(specs), values_(values), calls_(calls) {
    for (const VariableSpec& spec : specs) {
      const auto dims = spec.shape.dims();
      std::vector<std::int64_t> most(dims.begin(), dims.end());
      if (spec.sparse) most[0] = 1000;
      places_.emplace_back(spec.dtype, Shape(most));
    }
  }

  NormBy norm_by() const override { return computes_norm; }
  bool wants_next_rows() const override { return next_rows_wanted; }
  void begin_step(StepKind, std::span<const RowSet> rows, const StepScalars&) override {
    note("begin");
    note_rows(rows, rows_asked);
  }
  AsyncView need(VariableId variable) override {
    note("need", variable);
    return values_.at(name(variable)).view();
  }
  AsyncView place(VariableId variable) override {
    note("place", variable);
    return places_[std::size_t(variable)].view();
  }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    note("ready", variable);
    wait_on_host(event);
    const std::span<float> values = values_.at(name(variable)).data<float>();
    const float* gradient = places_[std::size_t(variable)].view().as<float>();
    if (!contribution.sparse) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= gradient[i];
      return;
    }
    const std::size_t row = values.size() / std::size_t(specs_[std::size_t(variable)].shape[0]);
    for (std::size_t r = 0; r < contribution.ids.size(); ++r) {
      for (std::size_t i = 0; i < row; ++i) {
        values[std::size_t(contribution.ids[r]) * row + i] -= gradient[r * row + i];
      }
    }
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    note("end");
    note_rows(next_rows, next_rows_asked);
    last_clip_scale = clip_scale;
    return handle_;
  }

  using Rows = std::map<std::string, std::vector<std::int32_t>>;
  float last_clip_scale = -1;
  NormBy computes_norm = NormBy::kPlan;
  bool next_rows_wanted = false;
  Rows rows_asked, next_rows_asked;

 private:
  struct Handle : StepHandle {
    std::int64_t global_step() override { return 1; }
  };
  void note_rows(std::span<const RowSet> rows, Rows& asked) {
    if (calls_ == nullptr) return;
    asked.clear();
    for (const RowSet& set : rows) {
      asked[specs_[std::size_t(set.variable)].name].assign(set.ids.begin(), set.ids.end());
    }
  }
  const std::string& name(VariableId variable) const { return specs_[std::size_t(variable)].name; }
  void note(const char* call) {
    if (calls_ != nullptr) calls_->push_back(call);
  }
  void note(const char* call, VariableId variable) {
    if (calls_ != nullptr) calls_->push_back(std::string(call) + " " + name(variable));
  }

  std::span<const VariableSpec> specs_;
  std::map<std::string, Tensor>& values_;
  std::vector<std::string>* calls_;
  std::vector<Tensor> places_;
  Handle handle_;
};

}  // namespace paceline
