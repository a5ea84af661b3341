# The live page (src/dashboard/page/), as a source of the room `dashboard`.
set(PACELINE_PAGE_FOLDER ${PROJECT_SOURCE_DIR}/src/dashboard/page)
set(PACELINE_PAGE_SOURCE ${PROJECT_BINARY_DIR}/generated/page.cc)
add_custom_command(
  OUTPUT ${PACELINE_PAGE_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${PACELINE_PAGE_FOLDER} -DOUTPUT=${PACELINE_PAGE_SOURCE}
          -P ${CMAKE_CURRENT_LIST_DIR}/EmbedPage.cmake
  DEPENDS ${PACELINE_PAGE_FOLDER}/page.html ${PACELINE_PAGE_FOLDER}/page.css
          ${PACELINE_PAGE_FOLDER}/page.js ${CMAKE_CURRENT_LIST_DIR}/EmbedPage.cmake
  COMMENT "")
target_sources(paceline_dashboard PRIVATE ${PACELINE_PAGE_SOURCE})
