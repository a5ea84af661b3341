# Every library that Paceline uses; docs/dependencies.md says what for and why this one.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
find_package(DNNL MODULE REQUIRED)
if(PACELINE_FUZZING)
  add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)  # clang has its own; nothing that is fuzzed uses it
else()
  find_package(OpenMP REQUIRED)
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
add_library(hwy::hwy ALIAS PkgConfig::HWY)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)

# Used header-only: Debian's own target would link its shared library.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(tomlplusplus::headers INTERFACE IMPORTED)
target_include_directories(tomlplusplus::headers SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})

if(PACELINE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  enable_testing()
endif()
