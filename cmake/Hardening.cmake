# What makes a bug in a parser harder to use: guarded stacks and library calls, addresses that differ
# from run to run, tables that are read-only once the program runs. Each where compiler and linker
# have it; tests/test_elf.c looks for them in what was built.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

set(CT_HARDENING "")
set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns of what another processor has
foreach(flag -fstack-protector-strong -fstack-clash-protection
             -fcf-protection -mbranch-protection=standard) # x86, arm
  string(MAKE_C_IDENTIFIER "CT_HAS${flag}" has)
  check_c_compiler_flag(${flag} ${has})
  if(${has})
    list(APPEND CT_HARDENING ${flag})
  endif()
endforeach()
unset(CMAKE_REQUIRED_FLAGS)
# Needs an optimising build; sanitizers look at the same calls more closely.
if(NOT CT_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" CT_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  set(level 2)
  if(CT_HAS_FORTIFY_3)
    set(level 3)
  endif()
  list(APPEND CT_HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
endif()
target_compile_options(ct_flags INTERFACE ${CT_HARDENING})

foreach(flag -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
  string(MAKE_C_IDENTIFIER "CT_LINKS${flag}" has)
  check_linker_flag(C ${flag} ${has})
  if(${has})
    if(flag STREQUAL "-pie") # CMAKE_POSITION_INDEPENDENT_CODE compiles for it
      set(flag $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
    endif()
    target_link_options(ct_flags INTERFACE ${flag})
  endif()
endforeach()
