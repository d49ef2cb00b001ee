# Libraries that read pictures, fetch archives and serve pages. Each is taken where it is installed and can be
# switched off with -DCT_WITH_<NAME>=OFF; what is missing says so when it is asked for (ct_config.h).
function(ct_find_library name package target)
  option(CT_WITH_${name} "use ${package}" ON)
  if(CT_WITH_${name})
    find_package(${package} QUIET)
    if(${package}_FOUND)
      target_link_libraries(crosstalk_core PUBLIC ${target})
    else()
      message(STATUS "without ${package}: not found")
      set(CT_WITH_${name} OFF PARENT_SCOPE)
    endif()
  endif()
endfunction()

ct_find_library(JPEG JPEG JPEG::JPEG)
ct_find_library(PNG PNG PNG::PNG)
ct_find_library(CURL CURL CURL::libcurl)
ct_find_library(MICROHTTPD Microhttpd Microhttpd::Microhttpd)
