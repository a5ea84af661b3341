// Standard input, output and error of a program that runs for a long time.
#pragma once

namespace paceline {

/// Prepares the three streams.
///
/// - A closed stream (`>&-`) is opened to /dev/null; otherwise the first file that the program
///   opens would get its number, and all that is printed.
/// - Standard output is written line by line, since a launcher must get a task's lines at once, and
///   not when a buffer is full.
/// - A file that grows beyond `ulimit -f` makes the write fail with an error, which is reported; a
///   signal would kill the process.
void prepare_standard_streams();

}  // namespace paceline
