# The cuda backend. CT_WITH_CUDA: AUTO takes it where nvcc is found, ON insists on it, OFF leaves it
# out; a build without it answers --device cuda with how to get it. Kernels are compiled for sm_80,
# sm_90 (some for sm_90a alone) and, as PTX, for whatever comes later; debug builds for sm_90 alone,
# to be built quickly. The runtime is linked in, so that the program starts where there is no GPU
# and no driver. EMULATED, for tests: the same kernels as C++, on a GPU that the host plays
# (tests/emulator); of CUDA it needs the headers alone.
set(CT_WITH_CUDA AUTO CACHE STRING "the cuda backend: AUTO, ON, OFF or EMULATED")
set(ct_use_cuda ${CT_WITH_CUDA})
if(CT_WITH_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  set(ct_use_cuda OFF)
  if(CMAKE_CUDA_COMPILER)
    set(ct_use_cuda ON)
  endif()
endif()

if(CT_WITH_CUDA STREQUAL "EMULATED")
  include(EmulatedCuda)
elseif(ct_use_cuda)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    if(CMAKE_BUILD_TYPE STREQUAL "Debug")
      set(CMAKE_CUDA_ARCHITECTURES 90-real)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
    endif()
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  file(GLOB_RECURSE CT_CUDA_SOURCES CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cuda/*.c)
  file(GLOB_RECURSE CT_CUDA_KERNELS CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cuda/*.cu)
  list(FILTER CT_CUDA_SOURCES EXCLUDE REGEX "/stub\\.c$")
  # Objects of their own: the project's C warnings mean nothing to nvcc. A family of kernels leaves
  # out on purpose what it cannot do.
  # Hopper's own instructions exist in sm_90a alone; on other chips nobody chooses those kernels.
  file(GLOB_RECURSE CT_HOPPER_KERNELS CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cuda/*_wgmma.cu)
  list(REMOVE_ITEM CT_CUDA_KERNELS ${CT_HOPPER_KERNELS})
  add_library(ct_hopper_kernels OBJECT ${CT_HOPPER_KERNELS})
  add_library(ct_cuda_kernels OBJECT ${CT_CUDA_KERNELS})
  list(JOIN CT_HARDENING "," hardening)
  foreach(kernels ct_cuda_kernels ct_hopper_kernels)
    target_include_directories(${kernels} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src
                               ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_compile_options(${kernels} PRIVATE -O3 -lineinfo
                           -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,${hardening})
    set_target_properties(${kernels} PROPERTIES CUDA_VISIBILITY_PRESET hidden)
    set_property(GLOBAL APPEND PROPERTY CT_OBJECTS ${kernels})
  endforeach()
  set_target_properties(ct_cuda_kernels PROPERTIES
                        CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
  set_target_properties(ct_hopper_kernels PROPERTIES CUDA_ARCHITECTURES 90a-real)
  target_sources(ct_objects PRIVATE ${CT_CUDA_SOURCES})
  target_include_directories(ct_objects SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  ct_use(CUDA::cudart_static ${CUDA_cudart_static_LIBRARY} dl rt)
  set(CT_WITH_CUDA ON)
else()
  message(STATUS "without CUDA")
  target_sources(ct_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cuda/stub.c)
  set(CT_WITH_CUDA OFF)
endif()
