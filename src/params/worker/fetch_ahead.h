// Values that change from one fetch step to the next are asked for before the next one begins: the
// real driver of protocol/ask_ahead.h.
#pragma once

#include "exec/parameter_store.h"
#include "params/protocol/ask_ahead.h"
#include "params/worker/worker_context.h"

namespace paceline {

/// The fetch steps of one plan over frames. One step thread.
class FetchAhead {
 public:
  explicit FetchAhead(WorkerContext& context);

  /// True when the step has to ask for the value.
  bool must_pull(VariableId variable) const;
  /// Notes that this step pulls the value.
  void note_pulled(VariableId variable);
  /// True when the step must wait for the next value.
  bool waits(VariableId variable) const;
  /// Takes a newer value, if there is one, for a step that needs it, and asks for the next.
  void go_on(VariableId variable);

 private:
  KnownValue known(VariableId variable) const;
  bool fits_one_frame(VariableId variable) const;

  WorkerContext& context_;
  WorkerState& core_;
  AskAhead machine_;
};

}  // namespace paceline
