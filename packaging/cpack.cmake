# STAGE=FOLDER VERSION=V FLOOR=2.28 MACHINE=x86_64 DEBIAN_MACHINE=amd64 MAINTAINER="NAME <ADDRESS>" OUT=FOLDER
# cpack --config packaging/cpack.cmake -G DEB|RPM: the tree in STAGE as a package of the system (scripts/package calls it).
foreach(_name STAGE VERSION FLOOR MACHINE DEBIAN_MACHINE MAINTAINER OUT)
  set(${_name} "$ENV{${_name}}")
endforeach()
set(CPACK_PACKAGE_NAME hpclaunch)
set(CPACK_PACKAGE_VERSION ${VERSION})
set(CPACK_PACKAGE_FILE_NAME hpclaunch-${VERSION})
set(CPACK_PACKAGE_VENDOR "hpclaunch developers")
set(CPACK_PACKAGE_CONTACT "${MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Launcher for distributed PyTorch jobs")
set(CPACK_PACKAGE_DESCRIPTION "Starts the ranks of a PyTorch job on one node or many, bound next to
their devices, with the environment that the interconnect and the
accelerators of the site need, and gives the reason of each setting.")
set(CPACK_PACKAGE_DIRECTORY ${OUT})
set(CPACK_INSTALLED_DIRECTORIES "${STAGE};/usr")
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_SET_DESTDIR OFF)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${DEBIAN_MACHINE})
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${FLOOR})")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-torch")
set(CPACK_DEBIAN_PACKAGE_SECTION science)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_ARCHITECTURE ${MACHINE})
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_GROUP Applications/Engineering)
# What CPack would own: folders of the system.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr /usr/bin /usr/libexec /usr/share /usr/share/doc /usr/share/man /usr/share/man/man1
    /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish /usr/share/fish/vendor_completions.d
    /usr/share/zsh /usr/share/zsh/site-functions /usr/share/modulefiles)
# The same bytes from the same sources: no host, no clock; the program is stripped already.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _build_id_links none
%define __os_install_post %{nil}
%define debug_package %{nil}")
