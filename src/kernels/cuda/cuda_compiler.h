// CUDA source to machine code, by NVRTC.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// The code of `source` for an architecture such as "sm_90". No driver is needed. Sums and products
/// round as on the host, and numbers below 1.2e-38 are zero. Throws kInternal with the compiler's
/// words.
std::vector<char> cuda_code(const CudaCalls& calls, const std::string& source,
                            const std::string& architecture);

/// Code that was compiled once is found again, in the files of a folder. What cannot be written
/// there is compiled again next time, and what cannot be read is compiled anew.
class CudaCodeCache {
 public:
  /// Files are kept nowhere when `folder` is empty. It is made when it is needed.
  CudaCodeCache(const CudaCalls& calls, std::string architecture, std::string folder);

  /// As cuda_code. `kept` says whether it was found.
  std::vector<char> code(const std::string& source, bool& kept) const;
  /// Compiles anew what was found and cannot be used.
  std::vector<char> code_anew(const std::string& source) const;

 private:
  std::string key_of(const std::string& source) const;
  std::string path_of(const std::string& key) const;

  const CudaCalls& calls_;
  const std::string architecture_, folder_;
};

}  // namespace paceline
