#include <fmt/format.h>

#include "base/print_text.h"
#include "base/real_clock.h"
#include "base/text_file.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/command_line.h"
#include "kernels/device.h"
#include "kernels/device_kind.h"
#include "predict/device_roof.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "run/usage_errors.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

CommandLine roof_line() {
  return {"paceline roof",
          "Prints what this machine can do: products and memory, on all cores and on one; with "
          "--device also what a GPU of it can do: products, memory, kernel launches and copies. "
          "paceline predict reads it from a file (--roof FILE), or as a host of --hosts FILE.",
          R"(Examples:
  paceline roof
  paceline roof --out node7.toml
  paceline roof --device cuda --out node8.toml)",
          {{"--out", "FILE", "Write it to this .toml file", "Flags"},
           {"--device", "cuda[:N]", "Measure this GPU, too, in some seconds", "Flags"}}};
}

// Returns the options of the device to measure.
DeviceOptions device_to_measure(const FlagValues& values) {
  const std::string text = values.text("--device");
  const std::optional<DeviceChoice> named = device_named(text);
  if (!named || !device_kind(named->kind).has_own_roof) {
    refuse_flag("--device", text,
                "must be cuda or cuda:N (a GPU of NVIDIA's): the processor is measured anyway, "
                "and flags say what a simulated device can do");
  }
  return {.kind = named->kind, .index = named->index};
}

}  // namespace

std::vector<CommandLine> roof_lines() { return {roof_line()}; }

int roof_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(roof_line(), arguments);
  if (!values) return 0;
  const std::string out = values->text("--out");
  if (values->given("--out")) check_new_file("--out", out);
  DeviceRoof of_device;
  if (values->given("--device")) {
    RealClock clock;
    of_device = measure_device_roof(*make_device(device_to_measure(*values), clock), clock);
  }
  SeenHost seen = host_of_moment();
  seen.host.device = of_device;
  if (!seen.discarded.empty()) print_text(stderr, seen.discarded + "\n");
  const std::string text = roof_file_text(seen.host);
  if (values->given("--out")) {
    write_text_file("the roof", out, text);
  } else {
    fmt::print("{}", text);
  }
  return 0;
}

}  // namespace paceline
