// Event files for TensorBoard.
#pragma once

#include <memory>
#include <string>

#include "paceline/hooks.h"

namespace paceline {

class StepDetails;

/// Writes an event file (docs/summaries.md) into FOLDER/TASK, such as out/summaries/worker:0. At
/// each interval it writes loss, learning rate, speed, the shares of the time, and the numbers that
/// the model gives (SessionOptions::summarise). The chief's file has the graph too and, the first,
/// every 50th and the last time of a run, a histogram of each variable, which it reads from the
/// store. With the session's details (RunOptions::summary_of) it also writes gradients, activations
/// and images of the first step, and of one step in each interval. Other steps cost a comparison.
/// If the file cannot be written, a warning says so once, and training goes on.
class Summaries : public Hook {
 public:
  /// Writes to files in `folder`, which is made if it is missing, at the interval `every`. A
  /// session that has details of steps gives them.
  explicit Summaries(std::string folder, Interval every = 20,
                     std::shared_ptr<StepDetails> details = nullptr);
  ~Summaries() override;
  Summaries(Summaries&&) noexcept;  // Session::add moves it
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  void summarised(Session& session, const std::string& tag, double value) override;
  void end(Session& session) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
