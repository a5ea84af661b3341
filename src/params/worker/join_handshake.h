// How a worker comes to be connected to every ps, whichever task starts first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/link.h"
#include "params/worker/arrivals.h"
#include "params/worker/ps_connection.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// Connects, says hello, and agrees on the variables with all ps tasks. Throws kUnavailable naming
/// the ps that did not come within join_timeout, kFailedPrecondition when one refuses.
class JoinHandshake {
 public:
  JoinHandshake(const PsStoreOptions& options, Arrivals& core, Link& link);

  void connect(PsConnection& ps);
  void agree(PsConnection& ps);
  /// Waits for the predicate until `deadline`, saying now and then what for. False when it passed.
  bool wait(const std::string& what, Deadline deadline, const std::function<bool()>& come);

 private:
  bool try_once(PsConnection& ps, std::string& reason);
  /// False, with the reason, when the ps serves another job, or went away before it answered.
  bool say_hello(PsConnection& ps, std::string& reason);
  void declare(PsConnection& ps);
  [[noreturn]] void too_late(const PsConnection& ps, const std::string& what,
                             const std::string& why = "") const;
  void say_waiting(const std::string& what);
  void check_interrupt() const;

  const PsStoreOptions& options_;
  Arrivals& core_;
  Link& link_;
  const Deadline deadline_;
  const std::uint64_t incarnation_;
  TimePoint next_say_;
};

}  // namespace paceline
