#include "kernels/naive/naive_kernels.h"

namespace paceline {

KernelTable naive_kernels() {
  KernelTable table;
  add_naive_elementwise_kernels(table);
  add_naive_cast_kernels(table);
  add_naive_layout_kernels(table);
  add_naive_reduce_kernels(table);
  return table;
}

}  // namespace paceline
