# The cpu backend's kernels: the same files compiled once per instruction set, each set under its own
# names (CT_ISA); which one runs is decided when the program starts. x86-64 and
# 64-bit ARM have sets of their own, elsewhere there is the portable one alone.
file(GLOB CT_KERNEL_SOURCES CONFIGURE_DEPENDS
     ${CMAKE_CURRENT_SOURCE_DIR}/src/backend/cpu/kernels/*.c)
# Set on the files because it must come after the project's -ffp-contract=off.
# Sanitizers in fully unrolled tiles take minutes to compile at -O3.
set(CT_KERNEL_LEVEL -O3)
if(CT_SANITIZE)
  set(CT_KERNEL_LEVEL -O1)
endif()
set_source_files_properties(${CT_KERNEL_SOURCES} PROPERTIES
                            COMPILE_OPTIONS "${CT_KERNEL_LEVEL};-ffp-contract=fast")

function(ct_add_kernels isa)
  add_library(ct_kernels_${isa} OBJECT ${CT_KERNEL_SOURCES})
  target_include_directories(ct_kernels_${isa} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_compile_definitions(ct_kernels_${isa} PRIVATE CT_ISA=${isa})
  target_compile_options(ct_kernels_${isa} PRIVATE ${ARGN})
  target_link_libraries(ct_kernels_${isa} PRIVATE ct_flags)
  set_property(GLOBAL APPEND PROPERTY CT_OBJECTS ct_kernels_${isa})
endfunction()

set(CT_X86_KERNELS 0)
set(CT_ARM_KERNELS 0)
ct_add_kernels(portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  ct_add_kernels(avx2 -mavx2 -mfma)
  ct_add_kernels(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
  set(CT_X86_KERNELS 1)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  # gcc's first scheduling takes more registers than there are and spills accumulators.
  ct_add_kernels(neon $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>)
  target_compile_definitions(ct_kernels_neon PRIVATE CT_NEON=1)
  set(CT_ARM_KERNELS 1)
endif()
target_compile_definitions(ct_objects PRIVATE CT_X86_KERNELS=${CT_X86_KERNELS}
                                              CT_ARM_KERNELS=${CT_ARM_KERNELS})
