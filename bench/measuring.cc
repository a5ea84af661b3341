#include "bench/measuring.h"

#include <fmt/format.h>

#include <utility>

#include "base/cores.h"
#include "base/text_file.h"
#include "cli/flags/command_line.h"
#include "kernels/cpu/instruction_set.h"
#include "paceline/version.h"

namespace paceline::bench {
namespace {

Circumstances circumstances_here(const std::string& command, int repeats) {
  return {.command = command,
          .date = today(),
          .processor = processor_name(),
          .paceline = version_and_commit(),
          .onednn = onednn_version(),
          .cores = usable_cores(),
          .repeats = repeats};
}

void warn_of_debug_build() {
#ifndef NDEBUG
  fmt::print(stderr,
             "paceline: this is a debug build: it takes many minutes and its figures mean "
             "nothing; build with cmake --preset release or evidence\n");
#endif
}

}  // namespace

Measuring::Measuring(const std::string& command, std::string json, int repeats)
    : json_(std::move(json)), circumstances_(circumstances_here(command, repeats)) {
  if (!json_.empty()) check_new_file("--json", json_);
  warn_of_debug_build();
  fmt::print("{}, {} cores; {}; median of {} and quartiles\n\n", circumstances_.processor,
             circumstances_.cores, circumstances_.date, repeats);
}

void Measuring::keep() const {
  if (!json_.empty()) write_text_file("--json", json_, to_json(circumstances_, recorder_.tables()));
}

}  // namespace paceline::bench
