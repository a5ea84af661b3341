// The subcommands of `paceline`: one file each, one line each in main.cc.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// What follows the subcommand's name.
using Arguments = std::vector<std::string>;

// Each returns the exit status, and throws Error.
int bench_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int data_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int train_command(const Arguments& arguments);
int version_command(const Arguments& arguments);

}  // namespace paceline
