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
  foreach(_file ${_bash} ${_zsh} ${_fish} ${_man})
    get_filename_component(_folder ${_file} DIRECTORY)
    file(MAKE_DIRECTORY ${_folder})
  endforeach()
  # Through a .tmp: a program that fails half-way leaves no file that looks finished.
  function(hpclaunch_write file)
    string(JOIN " " _words ${ARGN})
    add_custom_command(OUTPUT ${file}
      COMMAND $<TARGET_FILE:hpclaunch> ${ARGN} > ${file}.tmp
      COMMAND ${CMAKE_COMMAND} -E rename ${file}.tmp ${file}
      DEPENDS hpclaunch VERBATIM COMMENT "Writing what hpclaunch ${_words} prints")
  endfunction()
  hpclaunch_write(${_bash} completion bash)
  hpclaunch_write(${_zsh} completion zsh)
  hpclaunch_write(${_fish} completion fish)
  hpclaunch_write(${_man} man)
  add_custom_target(hpclaunch_share ALL DEPENDS ${_bash} ${_zsh} ${_fish} ${_man})

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
install(PROGRAMS ${HPCLAUNCH_SHIM} DESTINATION libexec/hpclaunch)
install(FILES src/job/start/sitecustomize.py DESTINATION libexec/hpclaunch/start)
install(DIRECTORY profiles/ DESTINATION share/hpclaunch/profiles FILES_MATCHING PATTERN "*.json" PATTERN "README.md")
# README.md beside docs/ and examples/, as in the sources: their relative links hold in the installed tree.
set(_doc share/doc/hpclaunch)
install(FILES README.md LICENSE DESTINATION ${_doc})
install(DIRECTORY docs DESTINATION ${_doc})
install(DIRECTORY examples DESTINATION ${_doc} USE_SOURCE_PERMISSIONS)

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
