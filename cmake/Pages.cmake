# Man pages and shell completions, printed by the command itself, so that they say what --help says.
set(PACELINE_PAGES ${PROJECT_BINARY_DIR}/pages)
add_custom_command(
  OUTPUT ${PACELINE_PAGES}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${PACELINE_PAGES}
  COMMAND paceline_command manual --out ${PACELINE_PAGES}/man1
  COMMAND gzip -9n ${PACELINE_PAGES}/man1/*.1
  COMMAND paceline_command completion bash > ${PACELINE_PAGES}/paceline
  COMMAND paceline_command completion zsh > ${PACELINE_PAGES}/_paceline
  COMMAND paceline_command completion fish > ${PACELINE_PAGES}/paceline.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${PACELINE_PAGES}/stamp
  DEPENDS paceline_command
  COMMENT "Writing man pages and completions")
add_custom_target(paceline_pages ALL DEPENDS ${PACELINE_PAGES}/stamp)
if(TARGET process_tests)
  add_dependencies(process_tests paceline_pages)
endif()
