#include "base/cores.h"

#include <algorithm>
#include <thread>

namespace paceline {

int cores_of_machine() { return std::max(1, int(std::thread::hardware_concurrency())); }

}  // namespace paceline
