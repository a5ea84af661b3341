// For tests: reads the flags of a cluster and a run from one line.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "base/testing/error_of.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/run_options_reader.h"
#include "paceline/error.h"

namespace paceline {

/// The flags of a command line.
struct Parsed {
  Cluster cluster;
  RunOptions run;
  ObserverOptions observers;
  LabOptions lab = {};
  std::string old_name_hint = {};
};

/// Reads words that are separated by spaces; '_' stands for an empty word.
inline Parsed read(const std::string& text) {
  CommandLine line{"trainer", "Trains.", cluster_examples("trainer"), run_flags()};
  const std::vector<Flag> cluster = cluster_flags();
  line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word == "_" ? "" : word);
  const FlagValues values = parse(line, words).value();
  Parsed parsed{read_cluster(values), read_run_options(values), read_observer_options(values)};
  parsed.lab = read_lab(values, parsed.cluster);
  parsed.old_name_hint = old_name_hint(values, parsed.cluster);
  return parsed;
}

/// Returns the error with which a command line is refused.
inline std::string refusal(const std::string& text) {
  return error_of(ErrorCode::kUsage, [&] { read(text); });
}

}  // namespace paceline
