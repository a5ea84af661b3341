#include "paceline/error.h"
#include "summary/event_reader.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

void fuzz_event_file(Bytes bytes) {
  const MemoryFile memory(bytes);
  try {
    EventReader reader(memory.path());
    while (const auto event = reader.next()) {
      // An accepted event must be unchanged after it was written and read again.
      if (SummaryEvent::decode(event->encode()).encode() != event->encode()) __builtin_trap();
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
