#include "kernels/kernel_table.h"

#include "base/check.h"

namespace paceline {

void KernelTable::add(std::string_view op, Factory factory) {
  const bool added = factories_.emplace(op, factory).second;
  PACELINE_CHECK(added);
}

KernelTable::Factory KernelTable::find(std::string_view op) const {
  const auto found = factories_.find(op);
  return found == factories_.end() ? nullptr : found->second;
}

}  // namespace paceline
