# generated/commit.h: what `paceline version` says, kept right without a new configuration.
set(PACELINE_COMMIT_HEADER ${PROJECT_BINARY_DIR}/include/generated/commit.h)
add_custom_target(paceline_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUTPUT=${PACELINE_COMMIT_HEADER} -P ${CMAKE_CURRENT_LIST_DIR}/Commit.cmake
  BYPRODUCTS ${PACELINE_COMMIT_HEADER}
  COMMENT "")
if(TARGET paceline_run)
  add_dependencies(paceline_run paceline_commit)
  target_include_directories(paceline_run PRIVATE ${PROJECT_BINARY_DIR}/include)
endif()
