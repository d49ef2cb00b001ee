# ct_embed(FILE NAME): the file's bytes as NAME[], with a 0 behind them, compiled into the library.
function(ct_embed file name)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(source ${CT_GENERATED}/${name}.c)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  file(CONFIGURE OUTPUT ${source} CONTENT
    "extern const char ${name}[];\nconst char ${name}[] = {@bytes@0};\n" @ONLY)
  target_sources(ct_objects PRIVATE ${source})
endfunction()

ct_embed(src/report/page.css ct_report_css)
ct_embed(src/report/page.js ct_report_script)
ct_embed(src/serve/live.js ct_serve_script)
