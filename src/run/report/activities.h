// What a task spends its time on, in words and colours. trace/step_account.h has the activities of
// a worker; a ps applies contributions, has queued frames, or is idle.
#pragma once

#include <string_view>

namespace paceline {

struct ActivityWords {
  std::string_view name;  // in reports: "pull"
  // Stands beside the activity's colour on the page; page.css has the colour by this name.
  std::string_view label;
  std::string_view sentence;  // "… of the time went to" these
  char letter;                // in a terminal without colours
  int colour;                 // in a terminal, of 256
};

/// The activities, in the order in which pictures show them.
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
