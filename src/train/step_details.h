// The gradients, activations and images of one step, as summaries.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/step_observer.h"
#include "paceline/run_options.h"
#include "summary/event.h"

namespace paceline {

/// True when an input of the graph has the shape of images, which summaries can show.
bool has_image_input(const Graph& graph);

/// Summaries ask() for the details of the next step, the train loop shows that step to this object,
/// and summaries take() the details. The session's thread calls this object between steps, and the
/// thread that computes a step calls it within that step.
class StepDetails : public StepObserver {
 public:
  /// `variables` are the names by VariableId.
  StepDetails(const SummaryOf& of, std::vector<std::string> variables)
      : of_(of), variables_(std::move(variables)) {}

  void ask() { asked_ = true; }
  bool asked() const { return asked_; }
  /// Returns the details of the step that was shown since the last call; nothing: no step was
  /// shown.
  std::optional<std::vector<SummaryValue>> take();

  void begin_step() override;
  void input(std::string_view name, const TensorView& value) override;
  bool wants(const Node& node) const override;
  void computed(const Node& node, const TensorView& value) override;
  bool wants_contributions() const override { return of_.gradients; }
  void contributed(int variable, const TensorView& value) override;

 private:
  bool depends_on_input(const Node& node) const;

  const SummaryOf of_;
  const std::vector<std::string> variables_;
  bool asked_ = false, shown_ = false;
  std::vector<SummaryValue> values_;
  double squares_ = 0;  // of all gradients
  bool has_gradients_ = false;
  // For the graphs of this step: by node id, whether the node depends on an input.
  mutable std::map<const Graph*, std::vector<bool>> depend_;
};

}  // namespace paceline
