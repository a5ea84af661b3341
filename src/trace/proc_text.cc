#include "trace/proc_text.h"

#include <fstream>
#include <iterator>

namespace paceline {

std::string proc_text(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace paceline
