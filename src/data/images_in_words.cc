#include <fmt/format.h>

#include <numeric>

#include "base/grouped_digits.h"
#include "paceline/data.h"

namespace paceline {

std::string images_in_words(const RecordSource& images, std::int64_t classes) {
  const std::vector<std::int64_t> files = images.files();
  const std::int64_t count = std::accumulate(files.begin(), files.end(), std::int64_t{0});
  return fmt::format("{} image{}, {} classes", grouped_digits(count), count == 1 ? "" : "s",
                     grouped_digits(classes));
}

}  // namespace paceline
