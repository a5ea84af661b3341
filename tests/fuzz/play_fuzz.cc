// Runs a target on the bytes of each file, such as files that scripts/fuzz has found, without
// libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/targets.h"

int main(int argc, char** argv) {
  using paceline::testing::FuzzTarget, paceline::testing::kFuzzTargets;
  const auto target = argc < 3 ? std::end(kFuzzTargets)
                               : std::ranges::find(kFuzzTargets, argv[1], &FuzzTarget::name);
  if (target == std::end(kFuzzTargets)) {
    std::fprintf(
        stderr,
        "usage: %s TARGET FILE…    gives the target what each file holds; targets:", argv[0]);
    for (const FuzzTarget& known : kFuzzTargets) std::fprintf(stderr, " %s", known.name.data());
    std::fprintf(stderr, "\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) {
      std::fprintf(stderr, "%s: cannot read %s\n", argv[0], argv[i]);
      return 1;
    }
    target->run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
}
