// Standard input, output and error of a program that runs for a long time.
#pragma once

namespace paceline {

/// A stream that is closed (`>&-`) leads nowhere: else the first file that the program opens would
/// take its number and all that is printed. Lines of standard output are written when they are
/// whole: those of a task must reach its launcher then, not when a buffer is full. A file that
/// grows beyond `ulimit -f` is an error of the write, which is reported, and not a signal that
/// kills.
void prepare_standard_streams();

}  // namespace paceline
