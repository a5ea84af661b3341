#include "kernels/cuda/cuda_compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/crc32c.h"
#include "base/fingerprint.h"
#include "base/text_file.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr const char* kOptions[] = {"--std=c++17", "--fmad=false", "--ftz=true"};

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
    std::vector<const char*> words(std::begin(kOptions), std::end(kOptions));
    words.push_back(target.c_str());
    if (const CudaCalls::Status status =
            calls_.compile(program_, int(words.size()), words.data())) {
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

// Returns the contents of a file: a line with the sizes and a checksum, then the key and the code.
std::string file_of(const std::string& key, std::span<const char> code) {
  const std::uint32_t check = crc32c(std::as_bytes(code));
  return fmt::format("paceline kernel 1 {} {} {}\n{}{}", key.size(), code.size(), check, key,
                     std::string_view(code.data(), code.size()));
}

// Returns the code in a file; an empty vector if the file does not exist, is not whole, or has
// another key.
std::vector<char> code_in(const std::string& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream read;
  read << file.rdbuf();
  const std::string text = std::move(read).str();
  const std::size_t begin = text.find('\n') + 1 + key.size();
  if (!file || begin <= key.size() || begin >= text.size()) return {};
  std::vector<char> code(text.begin() + std::ptrdiff_t(begin), text.end());
  return file_of(key, code) == text ? code : std::vector<char>();
}

}  // namespace

std::vector<char> cuda_code(const CudaCalls& calls, const std::string& source,
                            const std::string& architecture) {
  return SourceProgram(calls, source).code(architecture);
}

CudaCodeCache::CudaCodeCache(const CudaCalls& calls, std::string architecture, std::string folder)
    : calls_(calls), architecture_(std::move(architecture)), folder_(std::move(folder)) {}

std::string CudaCodeCache::key_of(const std::string& source) const {
  int major = 0, minor = 0;
  calls_.compiler_version(&major, &minor);
  return fmt::format("NVRTC {}.{} {} {}\n{}", major, minor, architecture_, fmt::join(kOptions, " "),
                     source);
}

std::string CudaCodeCache::path_of(const std::string& key) const {
  return fmt::format("{}/{:016x}.kernel", folder_, fingerprint_of(std::as_bytes(std::span(key))));
}

std::vector<char> CudaCodeCache::code(const std::string& source, bool& kept) const {
  const std::string key = key_of(source);
  std::vector<char> code;
  if (!folder_.empty()) code = code_in(path_of(key), key);
  kept = !code.empty();
  return kept ? code : code_anew(source);
}

std::vector<char> CudaCodeCache::code_anew(const std::string& source) const {
  std::vector<char> code = cuda_code(calls_, source, architecture_);
  if (folder_.empty()) return code;
  const std::string key = key_of(source);
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  try {
    write_text_file("the kernel", path_of(key), file_of(key, code));
  } catch (const Error&) {
    // A cache that cannot be written costs only time.
  }
  return code;
}

}  // namespace paceline
