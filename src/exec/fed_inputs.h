// The inputs of a plan that were filled for the next step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exec/plan.h"
#include "paceline/tensor.h"

namespace paceline {

/// Allocates nothing once it is made, except for the names of errors.
class FedInputs {
 public:
  explicit FedInputs(const Plan& plan);
  /// From now on inputs are filled for another step. Those that are kept count as filled.
  void begin();
  /// A name that is no input of the plan is ignored.
  void note(std::string_view input);
  /// The input counts as filled in later steps too. Throws kFailedPrecondition when it was not
  /// filled for this step.
  void keep(std::string_view input);
  /// `tensor` is what the input keeps.
  void keep(std::string_view input, const Tensor& tensor);
  /// The input keeps the values of this very tensor.
  bool keeps(std::string_view input, const Tensor& tensor) const;
  /// For the same plan on another device: an input that was not filled for this step, and that
  /// `other` keeps, becomes what it is there. Calls copy(name) for each.
  template <typename Copy>
  void take_kept(const FedInputs& other, Copy copy) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Input& own = inputs_[i];
      const Input& its = other.inputs_[i];
      if (own.filled || !its.kept || (own.fed && !its.filled)) continue;
      copy(own.name);
      own.fed = own.kept = true;
    }
  }
  /// Throws kFailedPrecondition, naming an input that the plan reads and that was not filled.
  void check() const;

 private:
  struct Input {
    std::string name;
    bool read = false;  // by the plan
    bool fed = false, kept = false;
    bool filled = false;  // for this step, and not only kept
    Tensor once;          // the value that it keeps, where that is a tensor of the program
  };
  Input* find(std::string_view name);

  std::vector<Input> inputs_;
};

}  // namespace paceline
