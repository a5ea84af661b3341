// libnvrtc.so.13 for tests: compiles kernels for the host, by g++ and what stands in
// cuda_on_host.h. An "image" is the path of the library that it makes, in $FAKE_NVRTC_FOLDER or a
// folder that goes with the process.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

#include "base/temporary_folder.h"

namespace {

struct Program {
  std::string source, log, image;
};

std::string folder() {
  if (const char* const given = std::getenv("FAKE_NVRTC_FOLDER")) return given;
  static const paceline::TemporaryFolder own;
  return own.path();
}

// One entry for each kernel of the source.
std::string with_entries(const std::string& source) {
  std::string text = "#include \"" PACELINE_SOURCE "/tests/fakes/cuda_on_host.h\"\n" + source +
                     "\nextern \"C\" void* paceline_keep = (void*)&paceline_emulated_calls;\n";
  // "__global__ void [__launch_bounds__(…)] name(": the name is what stands before the last "(".
  for (std::size_t at = source.find("__global__"); at != source.npos;
       at = source.find("__global__", at)) {
    constexpr std::string_view kBounds = "__launch_bounds__(";
    at = source.find("void", at) + 4;
    const std::size_t bounds = source.find_first_not_of(" \n", at);
    if (source.compare(bounds, kBounds.size(), kBounds) == 0) at = source.find(')', bounds) + 1;
    const std::size_t name = source.find_first_not_of(" \n", at);
    at = source.find_first_of(" \n(", name);
    text += fmt::format(
        "extern \"C\" emulated::Kernel paceline_kernel_{0}() {{ return "
        "emulated::kernel_of<&{0}>(&{0}); }}\n",
        source.substr(name, at - name));
  }
  return text;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

constexpr int kCompilationError = 6;

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int status) {
  return status == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, {}, {}};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}

// The same source is compiled once.
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  static int count = 0;
  static std::map<std::string, std::string> images;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const auto known = images.find(program->source); known != images.end()) {
    program->image = known->second;
    return 0;
  }
  std::string base = folder() + "/kernel_XXXXXX";
  if (mkdtemp(base.data()) == nullptr) return kCompilationError;
  base += "/" + std::to_string(count++);
  std::ofstream(base + ".cc") << with_entries(program->source);
  const std::string command = "g++ -std=c++17 -O1 -ffp-contract=off -fPIC -shared -w " + base +
                              ".cc -o " + base + ".so 2> " + base + ".log";
  if (std::system(command.c_str()) != 0) {
    program->log = text_of(base + ".log");
    return kCompilationError;
  }
  program->image = images[program->source] = base + ".so";
  return 0;
}

int nvrtcGetProgramLogSize(const Program* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(const Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(const Program* program, std::size_t* bytes) {
  *bytes = program->image.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(const Program* program, char* image) {
  std::memcpy(image, program->image.c_str(), program->image.size() + 1);
  return 0;
}

}  // extern "C"
