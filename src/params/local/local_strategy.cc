#include "params/local/local_strategy.h"

#include <memory>
#include <utility>

#include "params/local/local_control.h"
#include "params/local/local_store.h"

namespace paceline {

JoinedStrategy make_local_strategy(const JoinOptions& options,
                                   std::vector<VariableSpec> variables) {
  return {make_local_store(std::move(variables), options.pool, options.account, options.timeline,
                           options.cluster.train.on_nan),
          std::make_shared<LocalControl>()};
}

}  // namespace paceline
