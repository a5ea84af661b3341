#include "kernels/naive/naive_kernels.h"

namespace paceline {

KernelTable naive_kernels() {
  KernelTable table;
  return table;
}

}  // namespace paceline
