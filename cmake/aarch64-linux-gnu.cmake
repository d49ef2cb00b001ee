# Cross build for 64-bit ARM with Debian's gcc-aarch64-linux-gnu; qemu-user runs what it makes.
# zlib for it: dpkg --add-architecture arm64, apt-get install zlib1g-dev:arm64. Other libraries are
# used where they are installed the same way.
#   cmake -B build-aarch64 --toolchain cmake/aarch64-linux-gnu.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu)
# Multiarch: headers of both machines are in one place, libraries are not.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_IGNORE_PATH /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
# No MPI for it on the building machine: mpicc there is of that machine.
set(CT_WITH_MPI OFF CACHE BOOL "")
set(CT_WITH_CUDA OFF CACHE STRING "")
