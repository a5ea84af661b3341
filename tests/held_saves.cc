#include "tests/held_saves.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

namespace paceline::testing {

HeldSaves::HeldSaves(std::string pipe, std::string file)
    : pipe_(std::move(pipe)), file_(std::move(file)) {}

HeldSaves::~HeldSaves() {
  let_go();
  if (writer_ >= 0) close(writer_);
}

std::vector<std::string> HeldSaves::of(const std::vector<std::string>& words) const {
  // A sanitizer insists on being loaded before any other library, unless it is told not to.
  const std::string library = PACELINE_HOLD_SAVES;
  std::vector<std::string> all = {"env", "LD_PRELOAD=" + library,
                                  "ASAN_OPTIONS=verify_asan_link_order=0",
                                  "PACELINE_HELD_FILE=" + file_, "PACELINE_HELD_PIPE=" + pipe_};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void HeldSaves::hold() const {
  if (mkfifo(pipe_.c_str(), 0600) != 0) throw std::runtime_error("cannot make " + pipe_);
}

// Opening the pipe for reading and writing does not block, and gives a waiting reader its writer.
void HeldSaves::let_go() {
  if (writer_ < 0) writer_ = open(pipe_.c_str(), O_RDWR | O_CLOEXEC);
  unlink(pipe_.c_str());
}

}  // namespace paceline::testing
