#include "paceline/error.h"
#include "summary/event.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

void fuzz_event(Bytes bytes) {
  try {
    const std::string_view message(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string again = SummaryEvent::decode(message).encode();
    if (SummaryEvent::decode(again).encode() != again) __builtin_trap();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
