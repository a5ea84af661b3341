// What TensorBoard shows of a run.
#pragma once

#include <memory>
#include <string>

#include "paceline/hooks.h"

namespace paceline {

/// Writes an event file (docs/summaries.md) into FOLDER/TASK, such as out/summaries/worker:0. Each
/// time that is due: loss, learning rate, speed, where the time went, and what the model gives
/// (SessionOptions::summarise). The chief's has the graph, and the first, every 50th and the last
/// time of a run a histogram of each variable, which it reads from the store. A step in which
/// nothing is due costs a comparison. What cannot be written is said once; training goes on.
class Summaries : public Hook {
 public:
  /// Into files of `folder`, made where missing; `every`: how often.
  explicit Summaries(std::string folder, Interval every = 20);
  ~Summaries() override;
  Summaries(Summaries&&) noexcept;  // moves
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  void summarised(Session& session, const std::string& tag, double value) override;
  void end(Session& session) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
