#include "params/testing/equal_batches.h"

#include <utility>

namespace paceline {

std::vector<EqualBatchesCase> equal_batches_cases() {
  std::vector<EqualBatchesCase> all;
  const std::vector<std::pair<std::string, Rule>> rules = {
      {"sgd", Sgd{.learning_rate = 0.5f}}, {"momentum", Momentum{0.1f}}, {"adam", Adam{0.01f}}};
  for (const auto& [name, rule] : rules) {
    for (const bool clipped : {false, true}) {
      for (const bool shared : {false, true}) {
        all.push_back({name + (clipped ? "_clipped" : "") + (shared ? "_shared" : ""), rule,
                       clipped ? 0.05f : 0, shared});
      }
    }
  }
  return all;
}

std::shared_ptr<PsStore> EqualBatches::joined_store() {
  make_spec(1, 1);
  start_all_ps();
  PsStoreOptions options = store_options(0);
  options.share_memory = GetParam().shared;
  std::shared_ptr<PsStore> store = PsStore::join(options, specs_);
  store->write(initial_states(specs_), 0);
  return store;
}

}  // namespace paceline
