// What the time of a task goes to, in words and pictures. A worker's activities are those of
// trace/step_account.h; a ps applies, has frames that queue, or is idle.
#pragma once

#include <string_view>

namespace paceline {

struct ActivityWords {
  std::string_view name;      // in reports: "pull"
  std::string_view label;     // beside its colour on the page, which page.css has by its name
  std::string_view sentence;  // "… of the time went to" these
  char letter;                // its colour in a terminal, of 256
  int colour;
};

/// The activities in the order in which a picture shows them.
constexpr ActivityWords kActivityWords[] = {
    {"input", "making batches", "making batches", 'i', 214},
    {"compute", "kernels", "kernels", 'c', 36},
    {"pull", "waiting for values", "waiting for values from the ps", 'p', 74},
    {"push", "handing over", "handing contributions over", 'u', 32},
    {"apply", "rules", "rules, which update the variables", 'a', 184},
    {"queue", "frames waiting", "frames that waited", 'q', 175},
    {"wait", "waiting for workers", "waiting for other workers", 'w', 166},
    {"other", "outside the step", "work outside the step", '.', 245},
    {"idle", "idle", "nothing", ' ', 250}};

}  // namespace paceline
