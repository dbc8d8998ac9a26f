# gristmill_embed(TARGET FUNCTION BASE_FOLDER file...): adds a source to TARGET that defines
#   std::span<const gristmill::embedded_file> gristmill::FUNCTION();
# with the content of the files, named relative to BASE_FOLDER. Declare it in a header of the folder.
function(gristmill_embed target function base)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(script ${CMAKE_SOURCE_DIR}/cmake/write_embedded.cmake)
  list(TRANSFORM ARGN PREPEND ${base}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DFUNCTION=${function}" "-DBASE=${base}" "-DFILES=${ARGN}" -P ${script}
    DEPENDS ${paths} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${out})
  # All embedded files use the same names.
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
