#include "run/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <initializer_list>

namespace paceline {

void prepare_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() takes the lowest free number, which is that of the closed stream.
    if (fcntl(stream, F_GETFD) == -1) [[maybe_unused]]
      const int taken = open("/dev/null", O_RDWR);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace paceline
