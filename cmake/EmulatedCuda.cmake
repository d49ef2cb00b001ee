# The cuda backend on a GPU that the host plays (tests/emulator/emulator.h).
find_path(CT_CUDA_HEADERS cuda_runtime_api.h HINTS ENV CUDA_PATH PATHS /usr/local/cuda
          PATH_SUFFIXES include REQUIRED)
enable_language(CXX)
set(CMAKE_CXX_STANDARD 17)
file(GLOB_RECURSE CT_CUDA_SOURCES CONFIGURE_DEPENDS
     ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cuda/*.c)
list(FILTER CT_CUDA_SOURCES EXCLUDE REGEX "/stub\\.c$")
file(GLOB_RECURSE CT_CUDA_KERNELS CONFIGURE_DEPENDS
     ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cuda/*.cu)
file(GLOB CT_EMULATOR CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/emulator/*.cc)
set_source_files_properties(${CT_CUDA_KERNELS} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++;-w") # nvcc warns

add_library(ct_emulated_gpu OBJECT ${CT_CUDA_KERNELS} ${CT_EMULATOR})
# Its headers stand in for those of the same name in src.
target_include_directories(ct_emulated_gpu PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/tests/emulator
                           ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_include_directories(ct_emulated_gpu SYSTEM PRIVATE ${CT_CUDA_HEADERS})
# Not fortified: fibers jump from stack to stack. Families of kernels leave out what they cannot do.
target_compile_options(ct_emulated_gpu PRIVATE
  -include ${CMAKE_CURRENT_SOURCE_DIR}/tests/emulator/emulator.h
  -O2 -ffp-contract=off -fno-strict-aliasing -fno-extern-tls-init -Wall -Wextra $<$<BOOL:${CT_DEVELOPER}>:-Werror>)
if(CT_SANITIZE)
  target_compile_options(ct_emulated_gpu PRIVATE -g -fsanitize=${sanitizers}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_compile_options(ct_emulated_gpu PRIVATE -mavx2 -mfma) # fmaf in one instruction
endif()
set_property(GLOBAL APPEND PROPERTY CT_OBJECTS ct_emulated_gpu)
target_sources(ct_objects PRIVATE ${CT_CUDA_SOURCES})
target_include_directories(ct_objects SYSTEM PRIVATE ${CT_CUDA_HEADERS})
ct_use(stdc++ stdc++)
set(CT_WITH_CUDA ON)
