#include "base/this_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace paceline {

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("pid {} on host {}", ::getpid(), host.data());
}

}  // namespace paceline
