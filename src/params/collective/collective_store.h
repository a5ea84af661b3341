// All-reduce as a store: every worker has all variables, the workers average their contributions,
// and each applies the rule to the mean.
#pragma once

#include <memory>
#include <vector>

#include "params/collective/collective_options.h"
#include "params/job_control.h"
#include "params/savable_store.h"

namespace paceline {

class CollectiveStore : public SavableStore, public JobControl {
 public:
  /// Listens, and joins the others. Throws kUnavailable when no training worker was found within
  /// join_timeout, and kFailedPrecondition when another worker refuses this worker.
  static std::unique_ptr<CollectiveStore> join(const CollectiveOptions& options,
                                               std::vector<VariableSpec> variables);
  /// The workers with which this worker is not connected.
  virtual std::vector<std::int32_t> unreached() const = 0;
};

}  // namespace paceline
