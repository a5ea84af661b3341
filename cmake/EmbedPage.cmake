# Writes OUTPUT, a source with the live page as one text; run with cmake -P.
cmake_minimum_required(VERSION 3.25)
file(READ ${FOLDER}/page.css PAGE_STYLE)
file(READ ${FOLDER}/page.js PAGE_SCRIPT)
file(READ ${FOLDER}/page.html page)
string(REPLACE "%STYLE%" "${PAGE_STYLE}" page "${page}")
string(REPLACE "%SCRIPT%" "${PAGE_SCRIPT}" page "${page}")
file(WRITE ${OUTPUT} "#include \"dashboard/page.h\"\n\nnamespace paceline {\n\n"
                     "const std::string_view kPage = R\"page(${page})page\";\n\n}  // namespace paceline\n")
