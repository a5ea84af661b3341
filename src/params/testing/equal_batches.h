// For tests: compares a store that makes one update of several batches with a store that takes
// these batches as one.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "params/testing/trainee.h"

namespace paceline {

struct EqualBatchesCase {
  std::string name;
  Rule rule;
  float clip_norm;
  bool shared;  // shares memory with the ps
};

/// Returns cases for all kinds of slots: rules with and without clipping, on a ps that shares its
/// memory and on one that does not.
std::vector<EqualBatchesCase> equal_batches_cases();

inline std::ostream& operator<<(std::ostream& out, const EqualBatchesCase& test) {
  return out << test.name;
}

/// Makes a model with batches of 32 and one with batches of 128, and joins a ps.
class EqualBatches : public JobFixture, public ::testing::WithParamInterface<EqualBatchesCase> {
 protected:
  /// Starts the ps and joins it.
  std::shared_ptr<PsStore> joined_store();

  const LookupModel small_{32, GetParam().rule, GetParam().clip_norm};
  const LookupModel large_{128, GetParam().rule, GetParam().clip_norm};
  const std::vector<VariableSpec> specs_ = small_.specs();
};

}  // namespace paceline
