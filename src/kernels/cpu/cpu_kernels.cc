#include "kernels/cpu/cpu_kernels.h"

namespace paceline {

KernelTable cpu_kernels() {
  KernelTable table;
  add_cpu_elementwise_kernels(table);
  add_cpu_cast_kernels(table);
  add_cpu_fused_kernels(table);
  add_cpu_layout_kernels(table);
  add_cpu_reduce_kernels(table);
  return table;
}

}  // namespace paceline
