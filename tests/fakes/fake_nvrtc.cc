// libnvrtc.so.13 for tests. It compiles kernels for the host, with g++ and cuda_on_host.h. An
// "image" is the path of the resulting library in the build folder. The library's name is a hash of
// all its inputs, so that other processes find it there.
#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

namespace {

struct Program {
  std::string source, log, image;
};

constexpr const char* kHeader = PACELINE_SOURCE "/tests/fakes/cuda_on_host.h";

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Adds an entry function for each kernel of the source.
std::string with_entries(const std::string& source) {
  std::string text = std::string("#include \"") + kHeader + "\"\n" + source +
                     "\nextern \"C\" void* paceline_keep = (void*)&paceline_emulated_calls;\n";
  // In "__global__ void [__launch_bounds__(…)] name(", the name stands before the last "(".
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

constexpr int kCompilationError = 6;

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int status) {
  return status == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

// No real compiler has this version, so that code of the fake and of a real compiler is not mixed
// up.
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 999;
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

// Processes that compile the same source at the same time write equal libraries under different
// names. Each then renames its library to the final name, so it does not matter which comes last.
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  static const std::string header = text_of(kHeader);
  const std::string compiler = "g++ -std=c++17 -O2 -ffp-contract=off -fPIC -shared -w";
  const std::string source = with_entries(program->source);
  const std::string name =
      fmt::format("{}/{:016x}", PACELINE_KERNELS,
                  std::hash<std::string>()(compiler + '\0' + header + '\0' + source));
  program->image = name + ".so";
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (std::filesystem::exists(program->image)) return 0;
  std::filesystem::create_directories(PACELINE_KERNELS);
  const std::string base = fmt::format("{}.{}", name, ::getpid());
  std::ofstream(base + ".cc") << source;
  const std::string command = fmt::format("{0} {1}.cc -o {1}.so 2> {1}.log", compiler, base);
  const bool done = std::system(command.c_str()) == 0;
  if (!done) program->log = text_of(base + ".log");
  if (done) std::filesystem::rename(base + ".so", program->image);
  for (const char* const kind : {".cc", ".log"}) std::filesystem::remove(base + kind);
  return done ? 0 : kCompilationError;
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
