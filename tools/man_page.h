// Man pages from the tables that --help prints.
#pragma once

#include <string>
#include <vector>

#include "tools/subcommand.h"

namespace paceline {

struct ManPage {
  std::string name;  // "paceline-train-mlp"
  std::string text;  // roff, for man(7) in section 1
};

/// paceline(1) and one page for each command line, except where that of a longer one ("paceline
/// bench step mlp") belongs to the page of the shorter.
std::vector<ManPage> man_pages();

}  // namespace paceline
