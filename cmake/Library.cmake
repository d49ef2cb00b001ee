# libcrosstalk from ct_objects: libcrosstalk.a, which the program and the tests are linked with, and
# libcrosstalk.so. What other projects need to find and link them: crosstalk.pc, a CMake package.
get_property(objects GLOBAL PROPERTY CT_OBJECTS)
ct_find_uses(CT_STATIC_FLAGS folders)

# Libraries are found where they lay when the program was linked, in the build folder and installed
# alike. CMake would otherwise pad the build folder's list with empty elements, which mean the
# working directory.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH ${folders})

add_library(crosstalk_core STATIC)
target_link_libraries(crosstalk_core PUBLIC ct_objects PRIVATE ${objects})
add_library(crosstalk_shared SHARED)
target_link_libraries(crosstalk_shared PRIVATE ct_objects ${objects})
target_include_directories(crosstalk_shared INTERFACE
  ${CMAKE_CURRENT_SOURCE_DIR}/include ${CT_GENERATED})
# What comes with other people's archives (CUDA's runtime) stays inside.
target_link_options(crosstalk_shared PRIVATE -Wl,--exclude-libs,ALL)
if(NOT CT_SANITIZE) # whose functions are the program's
  target_link_options(crosstalk_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(crosstalk_core crosstalk_shared PROPERTIES
                      OUTPUT_NAME crosstalk LINKER_LANGUAGE C)
set_target_properties(crosstalk_shared PROPERTIES
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
add_library(crosstalk::crosstalk ALIAS crosstalk_shared)
add_library(crosstalk::static ALIAS crosstalk_core)

# ---- what is installed of it ----

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/crosstalk)
# Relative, so that an installed tree can be moved.
string(REGEX REPLACE "[^/]+" ".." CT_PREFIX_FROM_PC ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
list(JOIN CT_STATIC_FLAGS " " CT_STATIC_LINE)
configure_file(cmake/crosstalk.pc.in ${CT_GENERATED}/crosstalk.pc @ONLY)
configure_package_config_file(cmake/crosstalkConfig.cmake.in ${CT_GENERATED}/crosstalkConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CT_GENERATED}/crosstalkConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

install(TARGETS crosstalk_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT libcrosstalk0 NAMELINK_COMPONENT libcrosstalk-dev)
install(TARGETS crosstalk_core ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT libcrosstalk-dev)
install(DIRECTORY include/crosstalk ${CT_GENERATED}/crosstalk
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libcrosstalk-dev
        FILES_MATCHING PATTERN "*.h")
install(FILES ${CT_GENERATED}/crosstalk.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT libcrosstalk-dev)
install(FILES ${CT_GENERATED}/crosstalkConfig.cmake ${CT_GENERATED}/crosstalkConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT libcrosstalk-dev)
