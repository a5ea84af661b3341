#include "run/report/bad_records_in_words.h"

#include <fmt/format.h>

#include "base/grouped_digits.h"

namespace paceline {

std::string bad_records_in_words(const TaskReport& worker) {
  if (!worker.input || worker.input->bad == 0) return "";
  if (worker.input->bad == 1) return "1 bad record was left out of the input.";
  return fmt::format("{} bad records were left out of the input.",
                     grouped_digits(worker.input->bad));
}

}  // namespace paceline
