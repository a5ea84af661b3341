#include "cli/flags/config_file.h"
#include "paceline/error.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

const CommandLine& program() {
  static const CommandLine line{"trainer",
                                "",
                                "",
                                {{"--steps", "N", "", "Run"},
                                 {"--quiet", "", "", "Run"},
                                 {"--cluster", "SPEC", "", "Run"},
                                 {"--set", "NAME=VALUE", "", "Model", true}}};
  return line;
}

}  // namespace

void fuzz_config(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const auto parse : {parse_json, parse_toml}) {
    try {
      for (const GivenFlag& flag : flags_of(parse(text, "job"), program(), "job")) {
        if (flag.values.empty()) __builtin_trap();
      }
    } catch (const Error& error) {
      // Every refusal has a place.
      if (error.code() != ErrorCode::kUsage) throw;
      if (!std::string_view(error.what()).starts_with("job, line ")) __builtin_trap();
    }
  }
}

}  // namespace paceline::testing
