#include "kernels/cuda/cuda_compiler.h"

#include <fmt/format.h>

#include <iterator>

#include "paceline/error.h"

namespace paceline {
namespace {

/// A program of NVRTC.
class SourceProgram {
 public:
  SourceProgram(const CudaCalls& calls, const std::string& source) : calls_(calls) {
    check(calls.make_program(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr));
  }
  ~SourceProgram() { calls_.destroy_program(&program_); }
  SourceProgram(const SourceProgram&) = delete;
  SourceProgram& operator=(const SourceProgram&) = delete;

  std::vector<char> code(const std::string& architecture) {
    const std::string target = "-arch=" + architecture;
    const char* const words[] = {target.c_str(), "--std=c++17", "--fmad=false", "--ftz=true"};
    if (const CudaCalls::Status status = calls_.compile(program_, int(std::size(words)), words)) {
      throw Error(ErrorCode::kInternal,
                  fmt::format("[cuda] NVRTC refused a kernel for {} ({}): {}", architecture,
                              calls_.compiler_error_text(status), log()));
    }
    std::size_t bytes = 0;
    check(calls_.cubin_bytes(program_, &bytes));
    std::vector<char> image(bytes);
    check(calls_.cubin(program_, image.data()));
    return image;
  }

 private:
  void check(CudaCalls::Status status) const {
    if (status == 0) return;
    throw Error(ErrorCode::kInternal,
                fmt::format("[cuda] NVRTC failed: {}", calls_.compiler_error_text(status)));
  }
  std::string log() const {
    std::size_t bytes = 0;
    check(calls_.log_bytes(program_, &bytes));
    std::string text(bytes, '\0');
    check(calls_.log(program_, text.data()));
    return text.c_str();
  }

  const CudaCalls& calls_;
  CudaCalls::Program* program_ = nullptr;
};

}  // namespace

std::vector<char> cuda_code(const CudaCalls& calls, const std::string& source,
                            const std::string& architecture) {
  return SourceProgram(calls, source).code(architecture);
}

}  // namespace paceline
