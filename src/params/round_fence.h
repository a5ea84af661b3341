// The fence of `hybrid`: a step counts on the ps tasks and in the all-reduce, or in neither. The
// workers reduce one part of the variables, and the other part lies on ps tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "paceline/error.h"

namespace paceline {

/// The other workers train on without this worker, and its values no longer count. A new session
/// gets the others' values, and needs no checkpoint.
class LeftBehind : public Error {
 public:
  explicit LeftBehind(const std::string& message) : Error(ErrorCode::kAborted, message) {}
};

/// The ps tasks' side of a step. A worker's contribution to the ps tasks counts if the members
/// commit its step; otherwise it counts nowhere. The step thread makes the calls. All calls throw
/// the error of the ps tasks.
class RoundFence {
 public:
  virtual ~RoundFence() = default;
  /// The members begin a step from the values after `round` rounds. Returns once every ps has these
  /// values. Throws LeftBehind when the ps tasks have not counted the last step of the members,
  /// have counted it with other contributors, or are in another round.
  virtual void begin(std::int64_t round) = 0;
  /// Waits until the step's whole contribution is on every ps, or was dropped there. No member may
  /// commit the step before that.
  virtual void wait_given() = 0;
  /// Says that these members have committed the step. If the mean of both parts is clipped by its
  /// norm, `squares` is the sum of squares of the part that the workers reduce. Returns the clip
  /// scale; 1 without clipping.
  virtual float commit(std::span<const std::int32_t> contributors,
                       std::optional<double> squares) = 0;
  /// Call it when the step counts nowhere: this worker continues from the values after `round`
  /// rounds.
  virtual void lose(std::int64_t round) = 0;
  /// Waits until the ps tasks have closed the round of the last step. Throws as begin() does.
  virtual void wait_closed() = 0;
  /// Call it when the values of the part that the workers reduce are lost, so that those of the ps
  /// tasks are of no use. Throws kAborted once the ps tasks have forgotten their values, and
  /// kFailedPrecondition when a worker that this one does not reach trains with these values. Only
  /// the chief calls it.
  virtual void begin_again(const std::string& why, std::vector<std::int32_t> unreached) = 0;
  virtual void check() const = 0;
  /// True while the connection to some ps is cut. Any thread may call.
  virtual bool is_cut_off() const = 0;
  /// The incarnation of ps 0 whose values belong to those of the workers.
  virtual std::uint64_t ps_incarnation() const = 0;
};

}  // namespace paceline
