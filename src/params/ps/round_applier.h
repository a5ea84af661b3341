// Carries out what was decided about rounds on one ps: it applies the mean of the contributions
// that wait here, and answers their workers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "params/protocol/outbox.h"
#include "params/ps/incoming_step.h"
#include "params/ps/replies.h"
#include "params/shard/contribution_mean.h"
#include "params/shard/shard.h"

namespace paceline {

class NotFinite;
class PsDriver;

/// One worker's contribution, whole on this ps, until its round has been applied.
struct KeptContribution {
  std::shared_ptr<IncomingStep> step;                         // where it lies, or what says where
  std::vector<std::shared_ptr<const SharedMemory>> memories;  // of the worker: they must last
  std::vector<StepEnd::Entry> entries;                        // by position in the shard
  std::shared_ptr<SharedMemory> copy;  // the worker's, of the values; may be null
  Replies* replies = nullptr;
  std::uint64_t number = 0;     // of the step
  std::vector<bool> in_frames;  // by position: the worker gets the new values in frames
};

/// Decisions are carried out one after the other, each by the thread that finds none at work. While
/// it waits for the scale of a round, so do those that follow. Safe from any thread.
class RoundApplier {
 public:
  explicit RoundApplier(PsDriver& driver) : driver_(driver) {}

  void keep(int worker, std::uint64_t incarnation, KeptContribution contribution);
  // They are kept in the order in which the machine says them.
  void push(Shard& shard, Outbox::Decide decide);
  void push(const RoundScale& scale);
  /// Calls `act` once everything that was pushed before is carried out.
  void push(std::function<void()> act);
  /// Carries out what can be.
  void run();

 private:
  using Key = std::pair<int, std::uint64_t>;  // worker, incarnation
  using Work = std::variant<Outbox::Decide, std::function<void()>>;

  std::optional<Work> next();
  void begin(Outbox::Decide decide);
  void finish(float scale);
  void take(std::span<const RoundContribution> named, std::vector<KeptContribution>& taken);
  std::vector<MeanPart> parts(std::size_t position) const;
  double sum(std::size_t position);
  void apply(std::size_t position, float scale, bool clipped);
  void apply_mean(std::size_t position, const RuleStep& step, std::span<const MeanPart> parts,
                  bool clipped);
  Error blame(std::size_t position, const NotFinite& of_mean) const;
  template <typename F>
  void for_kept(F&& act);
  void hand_back(const KeptContribution& kept, std::size_t position);
  void send_values(std::size_t position);

  PsDriver& driver_;
  std::mutex mutex_;
  std::map<Key, KeptContribution> kept_;
  std::deque<Work> waiting_;
  std::optional<RoundScale> scale_;  // has come
  bool running_ = false;

  // These belong to the thread that runs.
  Shard* shard_ = nullptr;
  Outbox::Decide now_;
  bool awaits_scale_ = false;
  std::vector<KeptContribution> contributors_, dropped_;
  std::vector<RowMean> row_means_;  // by position
  std::vector<Buffer> means_;       // the same: of a round that is clipped, and of whole rules
  // The budget of each worker limits what it lets wait.
  const std::shared_ptr<ReplyBlocks> common_blocks_ =
      std::make_shared<ReplyBlocks>(ReplyBudget(std::numeric_limits<std::size_t>::max() / 2));
};

}  // namespace paceline
