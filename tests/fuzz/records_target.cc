#include "paceline/data.h"
#include "paceline/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

void fuzz_records(Bytes bytes) {
  const MemoryFile memory(bytes);
  const RecordFormat format = {.label_bytes = 2, .size = {2, 3, 3}, .classes = 10};
  try {
    const auto source = record_files({memory.path()}, format);
    Example example;
    for (std::int64_t i = 0; i < source->files()[0]; ++i) {
      source->read(i, example);
      if (example.label < 0 || example.label >= format.classes ||
          std::int64_t(example.bytes.size()) != format.size.values()) {
        __builtin_trap();
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
