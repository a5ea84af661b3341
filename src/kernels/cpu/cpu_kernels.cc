#include "kernels/cpu/cpu_kernels.h"

namespace paceline {

KernelTable cpu_kernels() {
  KernelTable table;
  return table;
}

}  // namespace paceline
