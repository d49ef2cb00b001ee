# ct_commit[]: the commit that the program was built from, "-dirty" behind it if files differ from it,
# "" where there is no repository. Looked up at every build, written only when it has changed.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.20)
  set(commit "")
  if(EXISTS ${SOURCE}/.git)
    execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=12
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  file(CONFIGURE OUTPUT ${OUT} CONTENT
    "#include \"util/version.h\"\n\nconst char ct_commit[] = \"@commit@\";\n" @ONLY)
  return()
endif()

set(CT_COMMIT_FILE ${CT_GENERATED}/ct_commit.c)
add_custom_target(ct_commit BYPRODUCTS ${CT_COMMIT_FILE}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR} -DOUT=${CT_COMMIT_FILE}
          -P ${CMAKE_CURRENT_LIST_FILE})
set_source_files_properties(${CT_COMMIT_FILE} PROPERTIES GENERATED TRUE)
target_sources(ct_objects PRIVATE ${CT_COMMIT_FILE})
add_dependencies(ct_objects ct_commit)
