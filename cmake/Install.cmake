# What is installed beside the library: the program and the experiments that it reproduces.
if(TARGET crosstalk)
  install(TARGETS crosstalk RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT crosstalk)
  install(DIRECTORY experiments/ DESTINATION ${CMAKE_INSTALL_DATADIR}/crosstalk/experiments
          COMPONENT crosstalk FILES_MATCHING PATTERN "*.conf")
endif()
