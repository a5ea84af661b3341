#include "checkpoint/safetensors_file.h"
#include "checkpoint/safetensors_writer.h"
#include "paceline/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

void fuzz_safetensors(Bytes bytes) {
  const MemoryFile memory(bytes);
  try {
    const SafetensorsFile file(memory.path());
    std::uint64_t total = 0;
    std::vector<TensorInfo> infos;
    for (const StoredTensor& tensor : file.tensors()) {
      total += file.read(tensor).bytes();
      infos.push_back(tensor);
    }
    // Accepted tensors must not have more bytes than the file, and it must be possible to write
    // them again.
    if (total > bytes.size()) __builtin_trap();
    encode_header(lay_out(infos, file.metadata()));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
