// The fence of `hybrid`: a step counts on the ps tasks and in the all-reduce, or in neither. A part
// of the variables is reduced among the workers, and the other part lies on ps tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "paceline/error.h"

namespace paceline {

/// The others train on without this worker, and its values count no more. A new session gets those
/// of the others, and needs no checkpoint.
class LeftBehind : public Error {
 public:
  explicit LeftBehind(const std::string& message) : Error(ErrorCode::kAborted, message) {}
};

/// A worker's contribution to the ps tasks counts if the members commit its step, and else nowhere.
/// The step thread calls it. All calls throw the error of the ps tasks.
class RoundFence {
 public:
  virtual ~RoundFence() = default;
  /// The members begin a step from the values that so many rounds have left. Returns once every ps
  /// has these. Throws LeftBehind when the ps tasks have not counted the last step of the members,
  /// or with other contributors, or when they are in another round.
  virtual void begin(std::int64_t round) = 0;
  /// Waits until all of the step's contribution is on every ps, or was dropped there. Nobody may
  /// commit it before.
  virtual void wait_given() = 0;
  /// The step is committed by these. `squares` are those of the mean of the other part, where the
  /// mean of both is clipped by its norm. Returns the clip scale, or 1.
  virtual float commit(std::span<const std::int32_t> contributors,
                       std::optional<double> squares) = 0;
  /// The step counts nowhere: this worker goes on from the values that so many rounds have left.
  virtual void lose(std::int64_t round) = 0;
  /// Waits until the ps tasks have closed the round of the last step. Throws as begin() does.
  virtual void wait_closed() = 0;
  /// The values of the other part are lost, and those of the ps tasks of no use. Throws kAborted
  /// once these have forgotten them, kFailedPrecondition when one of the workers that this one does
  /// not reach trains with them. Only of the chief.
  virtual void begin_again(const std::string& why, std::vector<std::int32_t> unreached) = 0;
  virtual void check() const = 0;
  /// True while the connection to some ps is cut. Any thread may call.
  virtual bool is_cut_off() const = 0;
  /// The process of ps 0, with whose values those of the workers belong together.
  virtual std::uint64_t ps_incarnation() const = 0;
};

}  // namespace paceline
