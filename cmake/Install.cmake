# What is installed beside the library: the program, its manual pages and completions, which it writes
# itself, the experiments that it reproduces, the license. And how to take all of it away again.
set(pages ${CT_GENERATED}/pages)
set(documents ${CMAKE_INSTALL_DATADIR}/doc)

if(TARGET crosstalk)
  # Run under the emulator where the program is for another machine.
  add_custom_command(OUTPUT ${pages}/man/crosstalk.1 ${pages}/completions/crosstalk
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND crosstalk help --man ${pages}/man --completions ${pages}/completions
    DEPENDS crosstalk COMMENT "Writing manual pages and completions" VERBATIM)
  add_custom_target(crosstalk_pages ALL DEPENDS ${pages}/man/crosstalk.1)

  install(TARGETS crosstalk RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT crosstalk)
  install(DIRECTORY experiments/ DESTINATION ${CMAKE_INSTALL_DATADIR}/crosstalk/experiments
          COMPONENT crosstalk FILES_MATCHING PATTERN "*.conf")
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT crosstalk)
  install(FILES ${pages}/completions/crosstalk COMPONENT crosstalk
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pages}/completions/_crosstalk COMPONENT crosstalk
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${pages}/completions/crosstalk.fish COMPONENT crosstalk
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# The Python package goes where Debian's python3 looks, and only with its component; elsewhere pip
# installs it.
set(CT_PYTHON_DIR lib/python3/dist-packages CACHE STRING
    "where the Python package goes, below the prefix")
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/python/crosstalk)
  install(DIRECTORY python/crosstalk DESTINATION ${CT_PYTHON_DIR} COMPONENT python3-crosstalk
          EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "py.typed"
          PATTERN "__pycache__" EXCLUDE)
endif()

install(FILES LICENSE DESTINATION ${documents}/crosstalk RENAME copyright COMPONENT crosstalk)
foreach(package libcrosstalk0 libcrosstalk-dev python3-crosstalk)
  install(FILES LICENSE DESTINATION ${documents}/${package} RENAME copyright COMPONENT ${package}
          EXCLUDE_FROM_ALL)
endforeach()

# Everything that the last cmake --install of this build folder wrote.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_CURRENT_BINARY_DIR}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/Uninstall.cmake)
