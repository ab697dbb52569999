/* Stands in for libfabric: what it answers is chosen by FAKE_LIBFABRIC. Laid out as rdma/fabric.h has it. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ep {
  int type;
};
struct domain {
  void* domain;
  const char* name;
};
struct fabric {
  void* fabric;
  const char *name, *provider;
};
struct bus {
  int type;
  uint16_t pci_domain;
  uint8_t pci_bus, pci_device, pci_function;
};
struct nic {
  size_t fid_class;
  void *context, *ops, *device;
  struct bus* bus;
  void* link;
};
struct info {
  struct info* next;
  uint64_t caps, mode;
  uint32_t format;
  size_t source_length, destination_length;
  void *source, *destination, *handle, *transmit, *receive;
  struct ep* endpoint;
  struct domain* domain;
  struct fabric* fabric;
  struct nic* nic;
};

#ifndef NO_GETINFO
uint32_t fi_version(void) { return 2U << 16 | 5U; }

struct parameter {
  const char* name;
  int type;
  const char *help, *value;
};

int fi_getparams(struct parameter** parameters, int* count) {
  static struct parameter all[] = {{"FI_HPE_LIMIT", 3, "Bytes before\na copy", "4096"},
                                   {"FI_HPE_MODE", 0, 0, 0}};
  const char* mode = getenv("FAKE_LIBFABRIC");
  if (mode != NULL && strcmp(mode, "none") == 0) return -61;
  *parameters = all;
  *count = 2;
  return 0;
}

static struct info* add(struct info* before, const char* provider, const char* domain, int endpoint,
                        unsigned bus) {
  struct info* one = calloc(1, sizeof *one);
  one->next = before;
  one->endpoint = calloc(1, sizeof *one->endpoint);
  one->endpoint->type = endpoint;
  one->domain = calloc(1, sizeof *one->domain);
  one->domain->name = domain;
  one->fabric = calloc(1, sizeof *one->fabric);
  one->fabric->provider = provider;
  if (bus != 0) {
    one->nic = calloc(1, sizeof *one->nic);
    one->nic->bus = calloc(1, sizeof *one->nic->bus);
    one->nic->bus->type = 1;
    one->nic->bus->pci_bus = (uint8_t)bus;
  }
  return one;
}

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct info* hints, struct info** answer) {
  const char* mode = getenv("FAKE_LIBFABRIC");
  (void)version, (void)node, (void)service, (void)flags, (void)hints;
  if (mode == NULL || strcmp(mode, "none") == 0) return -61; /* -FI_ENODATA */
  if (strcmp(mode, "crash") == 0) raise(SIGSEGV);
  if (strcmp(mode, "hang") == 0) sleep(600);
  if (strcmp(mode, "empty") == 0) {
    *answer = calloc(1, sizeof **answer); /* nothing is set */
    return 0;
  }
  struct info* list = NULL; /* built from its end */
  list = add(list, "tcp;ofi_rxm", "hsn0", 3, 0xc5);
  list = add(list, "verbs;ofi_rxd", "mlx5_0-dgram", 3, 0);
  list = add(list, "verbs;ofi_rxm", "mlx5_0", 3, 0);
  list = add(list, "verbs", "mlx5_0", 1, 0);
  list = add(list, "efa", "rdmap16s27-rdm", 3, 0);
  list = add(list, "cxi", "cxi0", 3, 0xc5);
  list = add(list, "opx", "unnamed", 3, 0x81); /* told by its PCI address alone */
  *answer = list;
  return 0;
}
#endif
