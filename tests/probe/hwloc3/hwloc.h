// The part of hwloc 3's interface that src/probe uses, written from its manual: the test probe.hwloc3 compiles the
// probe with it, where no hwloc 3 is installed. What differs from hwloc 2: types of OS devices are bits, there is no
// hwloc_obj_osdev_type_t, and infos are a structure.
#pragma once
#include <cstddef>

#define HWLOC_API_VERSION 0x00030000

struct hwloc_bitmap_s;
using hwloc_bitmap_t = hwloc_bitmap_s*;
using hwloc_const_bitmap_t = const hwloc_bitmap_s*;
using hwloc_cpuset_t = hwloc_bitmap_t;
using hwloc_const_cpuset_t = hwloc_const_bitmap_t;
using hwloc_nodeset_t = hwloc_bitmap_t;
struct hwloc_topology;
using hwloc_topology_t = hwloc_topology*;

enum hwloc_obj_type_t {
  HWLOC_OBJ_MACHINE,
  HWLOC_OBJ_PACKAGE,
  HWLOC_OBJ_DIE,
  HWLOC_OBJ_CORE,
  HWLOC_OBJ_PU,
  HWLOC_OBJ_L1CACHE,
  HWLOC_OBJ_L2CACHE,
  HWLOC_OBJ_L3CACHE,
  HWLOC_OBJ_L4CACHE,
  HWLOC_OBJ_L5CACHE,
  HWLOC_OBJ_GROUP,
  HWLOC_OBJ_NUMANODE,
  HWLOC_OBJ_BRIDGE,
  HWLOC_OBJ_PCI_DEVICE,
  HWLOC_OBJ_OS_DEVICE
};
enum hwloc_obj_bridge_type_t { HWLOC_OBJ_BRIDGE_HOST, HWLOC_OBJ_BRIDGE_PCI };
enum hwloc_obj_osdev_type_e {
  HWLOC_OBJ_OSDEV_NETWORK = 1 << 4,
  HWLOC_OBJ_OSDEV_OPENFABRICS = 1 << 5
};
using hwloc_obj_osdev_types_t = unsigned long;
enum hwloc_type_filter_e {
  HWLOC_TYPE_FILTER_KEEP_ALL,
  HWLOC_TYPE_FILTER_KEEP_NONE,
  HWLOC_TYPE_FILTER_KEEP_STRUCTURE
};
enum hwloc_topology_flags_e : unsigned long {
  HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED = 1,
  HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS = 2,
  HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS = 4
};

struct hwloc_info_s {
  char* name;
  char* value;
};
struct hwloc_infos_s {
  hwloc_info_s* array;
  unsigned count, allocated;
};
struct hwloc_pcidev_attr_s {
  unsigned domain;
  unsigned char bus, dev, func, prog_if;
  unsigned short class_id, vendor_id, device_id, subvendor_id, subdevice_id;
  unsigned char revision;
  float linkspeed;
};
union hwloc_obj_attr_u {
  struct {
    unsigned long long local_memory;
  } numanode;
  struct {
    unsigned long long size;
    unsigned depth;
  } cache;
  hwloc_pcidev_attr_s pcidev;
  struct {
    union {
      hwloc_pcidev_attr_s pci;
    } upstream;
    hwloc_obj_bridge_type_t upstream_type;
    union {
      struct {
        unsigned domain;
        unsigned char secondary_bus, subordinate_bus;
      } pci;
    } downstream;
    hwloc_obj_bridge_type_t downstream_type;
  } bridge;
  struct {
    hwloc_obj_osdev_types_t types;
  } osdev;
};
struct hwloc_obj {
  hwloc_obj_type_t type;
  char* subtype;
  unsigned os_index;
  char* name;
  unsigned long long total_memory;
  hwloc_obj_attr_u* attr;
  int depth;
  unsigned logical_index;
  hwloc_obj *next_cousin, *parent, *next_sibling, *first_child, *memory_first_child,
      *io_first_child;
  hwloc_cpuset_t cpuset, complete_cpuset;
  hwloc_nodeset_t nodeset, complete_nodeset;
  hwloc_infos_s infos;
  unsigned long long gp_index;
};
using hwloc_obj_t = hwloc_obj*;
struct hwloc_distances_s {
  unsigned nbobjs;
  hwloc_obj_t* objs;
  unsigned long kind;
  unsigned long long* values;
};

extern "C" {
unsigned hwloc_get_api_version();
hwloc_bitmap_t hwloc_bitmap_alloc();
void hwloc_bitmap_free(hwloc_bitmap_t);
int hwloc_bitmap_iszero(hwloc_const_bitmap_t), hwloc_bitmap_first(hwloc_const_bitmap_t),
    hwloc_bitmap_last(hwloc_const_bitmap_t), hwloc_bitmap_weight(hwloc_const_bitmap_t),
    hwloc_bitmap_next(hwloc_const_bitmap_t, int);
int hwloc_topology_init(hwloc_topology_t*), hwloc_topology_load(hwloc_topology_t);
void hwloc_topology_destroy(hwloc_topology_t);
int hwloc_topology_set_flags(hwloc_topology_t, unsigned long),
    hwloc_topology_set_synthetic(hwloc_topology_t, const char*),
    hwloc_topology_set_xmlbuffer(hwloc_topology_t, const char*, int),
    hwloc_topology_set_type_filter(hwloc_topology_t, hwloc_obj_type_t, hwloc_type_filter_e),
    hwloc_topology_set_io_types_filter(hwloc_topology_t, hwloc_type_filter_e),
    hwloc_topology_set_all_types_filter(hwloc_topology_t, hwloc_type_filter_e),
    hwloc_topology_export_xmlbuffer(hwloc_topology_t, char**, int*, unsigned long);
void hwloc_free_xmlbuffer(hwloc_topology_t, char*);
hwloc_const_cpuset_t hwloc_topology_get_topology_cpuset(hwloc_topology_t),
    hwloc_topology_get_allowed_cpuset(hwloc_topology_t);
hwloc_infos_s* hwloc_topology_get_infos(hwloc_topology_t);
const char* hwloc_get_info_by_name(hwloc_infos_s*, const char*);
const char* hwloc_obj_get_info_by_name(hwloc_obj_t, const char*);
hwloc_obj_t hwloc_get_root_obj(hwloc_topology_t),
    hwloc_get_next_osdev(hwloc_topology_t, hwloc_obj_t),
    hwloc_get_next_pcidev(hwloc_topology_t, hwloc_obj_t),
    hwloc_get_non_io_ancestor_obj(hwloc_topology_t, hwloc_obj_t),
    hwloc_get_next_obj_by_type(hwloc_topology_t, hwloc_obj_type_t, hwloc_obj_t),
    hwloc_get_ancestor_obj_by_type(hwloc_topology_t, hwloc_obj_type_t, hwloc_obj_t),
    hwloc_get_numanode_obj_by_os_index(hwloc_topology_t, unsigned);
int hwloc_get_nbobjs_by_type(hwloc_topology_t, hwloc_obj_type_t);
int hwloc_distances_get_by_name(hwloc_topology_t, const char*, unsigned*, hwloc_distances_s**,
                                unsigned long);
void hwloc_distances_release(hwloc_topology_t, hwloc_distances_s*);
int hwloc_cpukinds_get_nr(hwloc_topology_t, unsigned long);
int hwloc_cpukinds_get_info(hwloc_topology_t, unsigned, hwloc_bitmap_t, int*, hwloc_infos_s**,
                            unsigned long);
}
