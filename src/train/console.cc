#include "train/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/print_text.h"
#include "params/collective/mpi_library.h"

namespace paceline {

// mpirun gives each rank a terminal of its own and mixes the lines of all ranks, so a rank cannot
// replace its progress line.
Console::Console(bool quiet, const Log* log)
    : quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1 && !rank_by_mpirun()), log_(log) {}

void Console::write(const std::string& line, const char* end) const {
  if (log_ != nullptr) log_->remember(line);
  if (quiet_) return;
  // Erases the progress line that the terminal shows.
  constexpr const char* kClearLine = "\r\x1b[K";
  print_text(stdout, fmt::format("{}{}{}", terminal_ ? kClearLine : "", line, end));
}

}  // namespace paceline
