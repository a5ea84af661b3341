// Compiles CUDA source to machine code, by NVRTC.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// Returns the code of `source` for an architecture such as "sm_90". Needs no driver. Sums and
/// products round as on the host, and numbers below 1.2e-38 are zero. Throws kInternal with the
/// compiler's message.
std::vector<char> cuda_code(const CudaCalls& calls, const std::string& source,
                            const std::string& architecture);

/// Keeps compiled code in the files of a folder. If a file cannot be written, the next run compiles
/// again; if it cannot be read, this run does.
class CudaCodeCache {
 public:
  /// Keeps no files if `folder` is empty. Makes the folder when it is needed.
  CudaCodeCache(const CudaCalls& calls, std::string architecture, std::string folder);

  /// Returns the kept code of `source`, or compiles it as cuda_code does. Sets `kept` to whether
  /// the code was kept.
  std::vector<char> code(const std::string& source, bool& kept) const;
  /// Recompiles source whose kept code cannot be used.
  std::vector<char> code_anew(const std::string& source) const;

 private:
  std::string key_of(const std::string& source) const;
  std::string path_of(const std::string& key) const;

  const CudaCalls& calls_;
  const std::string architecture_, folder_;
};

}  // namespace paceline
