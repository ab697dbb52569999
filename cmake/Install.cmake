# The installed tree. Its layout is fixed, not taken from GNUInstallDirs: bin/hpclaunch finds
# ../libexec/hpclaunch/hpclaunch-shim and ../share/hpclaunch relative to itself, so that the tree can be
# moved, copied into a container image or unpacked from a tarball.
#
# Only the program itself knows its options, so completions and the man page are written by it at build time.
if(TARGET hpclaunch)
  set(_generated ${CMAKE_BINARY_DIR}/share)
  set(_bash ${_generated}/bash-completion/completions/hpclaunch)
  set(_zsh ${_generated}/zsh/site-functions/_hpclaunch)
  set(_fish ${_generated}/fish/vendor_completions.d/hpclaunch.fish)
  set(_man ${_generated}/man/man1/hpclaunch.1)
  set(_schema ${_generated}/hpclaunch/profiles/schema.json)
  foreach(_file ${_bash} ${_zsh} ${_fish} ${_man} ${_schema})
    get_filename_component(_folder ${_file} DIRECTORY)
    file(MAKE_DIRECTORY ${_folder})
  endforeach()
  # Through a .tmp: a program that fails half-way leaves no file that looks finished.
  function(hpclaunch_write file)
    string(JOIN " " _words ${ARGN})
    add_custom_command(OUTPUT ${file}
      COMMAND hpclaunch ${ARGN} > ${file}.tmp
      COMMAND ${CMAKE_COMMAND} -E rename ${file}.tmp ${file}
      DEPENDS hpclaunch VERBATIM COMMENT "Writing what hpclaunch ${_words} prints")
  endfunction()
  hpclaunch_write(${_bash} completion bash)
  hpclaunch_write(${_zsh} completion zsh)
  hpclaunch_write(${_fish} completion fish)
  hpclaunch_write(${_man} man)
  hpclaunch_write(${_schema} profile schema)
  add_custom_target(hpclaunch_share ALL DEPENDS ${_bash} ${_zsh} ${_fish} ${_man} ${_schema})

  # Libraries outside the system's folders (modules, Spack) are found again by the installed program.
  set_target_properties(hpclaunch PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS hpclaunch RUNTIME DESTINATION bin)
  install(DIRECTORY ${_generated}/ DESTINATION share PATTERN "*.tmp" EXCLUDE)
  # For `alias torchrun=torchrun-hpclaunch`: the name by which the program is started decides.
  foreach(_place "bin/torchrun-hpclaunch hpclaunch" "share/bash-completion/completions/torchrun-hpclaunch hpclaunch"
                 "share/fish/vendor_completions.d/torchrun-hpclaunch.fish hpclaunch.fish" "share/man/man1/torchrun-hpclaunch.1 hpclaunch.1")
    string(REPLACE " " ";" _place "${_place}")
    list(GET _place 0 _link)
    list(GET _place 1 _target)
    install(CODE "
      file(CREATE_LINK ${_target} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_link}\" SYMBOLIC)
      list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${_link}\")")
  endforeach()
endif()
install(PROGRAMS ${HPCLAUNCH_SHIM} ${HPCLAUNCH_STACKS} ${HPCLAUNCH_NODE} src/start/pbs-remote DESTINATION libexec/hpclaunch)
install(FILES src/start/hook/sitecustomize.py DESTINATION libexec/hpclaunch/start)
install(DIRECTORY profiles/ DESTINATION share/hpclaunch/profiles FILES_MATCHING PATTERN "*.json" PATTERN "README.md")
# README.md beside docs/ and examples/, as in the sources: their relative links hold in the installed tree.
set(_doc share/doc/hpclaunch)
install(FILES README.md LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md CITATION.cff DESTINATION ${_doc})
install(DIRECTORY docs DESTINATION ${_doc})
install(DIRECTORY examples DESTINATION ${_doc} USE_SOURCE_PERMISSIONS)

# A module file that finds the installation from its own place, for Lmod (.lua) and for Environment Modules.
install(FILES packaging/modules/hpclaunch.lua DESTINATION share/modulefiles/hpclaunch RENAME ${PROJECT_VERSION}.lua)
install(FILES packaging/modules/hpclaunch.tcl DESTINATION share/modulefiles/hpclaunch RENAME ${PROJECT_VERSION})

# The licences of what the program has inside: from the sources that were fetched, else from the distribution.
function(hpclaunch_licence name source)
  foreach(_file ${source}/LICENSE ${source}/LICENSE.MIT ${source}/COPYING)
    if(source AND EXISTS ${_file})
      install(FILES ${_file} DESTINATION ${_doc}/licences RENAME ${name})
      return()
    endif()
  endforeach()
  foreach(_package ${ARGN})
    foreach(_file ${HPCLAUNCH_AARCH64_PREFIX}/usr/share/doc/${_package}/copyright /usr/share/doc/${_package}/copyright
                  /usr/share/licenses/${_package}/LICENSE /usr/share/licenses/${_package}/COPYING
                  /usr/share/licenses/${_package}/COPYING.RUNTIME)
      if(EXISTS ${_file})
        install(FILES ${_file} DESTINATION ${_doc}/licences RENAME ${name})
        return()
      endif()
    endforeach()
  endforeach()
endfunction()
hpclaunch_licence(fmt "${fmt_SOURCE_DIR}" libfmt-dev fmt-devel fmt)
hpclaunch_licence(CLI11 "${CLI11_SOURCE_DIR}" libcli11-dev cli11-devel)
hpclaunch_licence(nlohmann_json "${nlohmann_json_SOURCE_DIR}" nlohmann-json3-dev json-devel)
hpclaunch_licence(hwloc "${hwloc_SOURCE_DIR}" libhwloc-dev hwloc-devel hwloc-libs hwloc)
string(REGEX MATCH "^[0-9]+" _gcc "${CMAKE_CXX_COMPILER_VERSION}")
hpclaunch_licence(libstdc++ "" libstdc++-${_gcc}-dev gcc-${_gcc}-base libstdc++ libstdc++-static)

# Release programs are installed without symbols, as by `cmake --install --strip`.
if(CMAKE_STRIP AND TARGET hpclaunch)
  install(CODE "
    if(CMAKE_INSTALL_CONFIG_NAME MATCHES \"^(Release|MinSizeRel)$\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/hpclaunch\")
    endif()")
endif()

# Removes what the last `cmake --install` of this build folder wrote.
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
                  -P ${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake VERBATIM)
