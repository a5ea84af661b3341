#include "paceline/program.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cluster/flags/cluster_reader.h"
#include "cluster/flags/flags.h"
#include "cluster/flags/job_flags.h"
#include "cluster/flags/run_options_reader.h"
#include "cluster/standard_streams.h"
#include "cluster/task_program.h"

namespace paceline {

int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work) {
  prepare_standard_streams();
  return report_errors([&] {
    const std::string name = std::filesystem::path(argv[0]).filename();
    CommandLine line{name, "Trains, alone or as a cluster.", cluster_examples(name), run_flags()};
    const std::vector<Flag> cluster = cluster_flags();
    line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::optional<FlagValues> values = parse_job(line, arguments, std::getenv("TF_CONFIG"));
    if (!values) return 0;
    return values->with_places([&] {
      return run_role({read_cluster(*values), read_run_options(*values), "", arguments, work});
    });
  });
}

}  // namespace paceline
