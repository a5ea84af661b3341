// Training of ptb: epochs over this worker's part of the text, validation, test. Towers go through
// equal parts of it side by side, each with an LSTM state of its own. Where the job shares out the
// text, the worker reads the blocks of all of it that it is given, and its states begin anew with
// each.
#pragma once

#include <optional>
#include <string>

#include "models/ptb_data.h"
#include "models/ptb_epoch.h"
#include "models/ptb_graph.h"
#include "paceline/session.h"

namespace paceline::models {

class PtbTraining {
 public:
  PtbTraining(const PtbConfig& config, const std::string& folder, const Cluster& cluster,
              const RunOptions& run);
  /// Trains for epochs until their number, --steps or --seconds is reached. An epoch that is cut
  /// short is not validated. Only a run that ends by epochs ends with a test, by the chief, after
  /// all workers have ended. A device that computes nothing makes none: it is one step for each
  /// word.
  void run();

 private:
  /// The position at which training goes on: the beginning, the position of the checkpoint, or, for
  /// a worker that was restarted, the position that its own steps have reached.
  struct Begin {
    std::int64_t epoch = 0, step = 0;
    double cost = 0;  // of the steps before; NaN: not known
    bool keep_state = false;
  };
  Begin begin();
  /// The position at which training goes on when the checkpoint was saved with another batch or
  /// unroll; nothing when it was saved with the same.
  std::optional<Begin> begin_of_other_batches();
  /// Throws kInvalidArgument unless the shared batches of the checkpoint are those of this run.
  void check_same_batches() const;
  void tell_position(TaskPosition& position) const;
  /// Returns false when training has ended for good within the epoch.
  bool run_epoch(std::int64_t epoch, const Begin& begin);
  bool train();
  void say_epoch();
  /// Returns the next batch of the epoch that is under way; none at its end.
  std::optional<std::int64_t> next_batch(Feed& feed);
  std::optional<std::int64_t> next_shared_batch(Feed& feed);
  void report_training(const PtbEpoch& epoch);
  void validate(std::int64_t epoch);
  void test();
  /// The perplexity of a graph on the newest variables.
  double evaluate(const Graph& graph, const PtbGraph& ptb, const TextBatches& batches,
                  std::int64_t time_steps);

  /// The rows of a step's batches, of all towers.
  std::int64_t rows() const { return config_.batch * std::int64_t(data_.train.size()); }
  /// The steps of an epoch.
  std::int64_t steps() const { return data_.train.front().size(); }

  PtbConfig config_;
  PtbData data_;
  bool by_epochs_;
  bool computes_;  // the device does, and not only take the time
  int workers_;
  std::optional<SharedBatches> shared_;  // of a text that the job shares out
  float carry_ = 0;                      // of the next step's states
  Graph train_graph_, valid_graph_, test_graph_;
  PtbGraph train_, valid_, test_;
  std::optional<PtbEpoch> epoch_;  // under way, or the last one
  std::int64_t epoch_number_ = 0, next_epoch_ = 0;
  PerplexityEnds ends_;
  Session session_;  // last: it asks for the position until it ends
};

}  // namespace paceline::models
