/* hwloc's archive asks udev for the makers of disks, which nothing here reads; libudev would be loaded at every start.
   Without an answer hwloc goes on. */
struct udev;
struct udev_device;
struct udev* udev_new(void);
struct udev* udev_unref(struct udev* udev);
struct udev_device* udev_device_new_from_subsystem_sysname(struct udev* udev, const char* subsystem, const char* name);
struct udev_device* udev_device_unref(struct udev_device* device);
const char* udev_device_get_property_value(struct udev_device* device, const char* key);

struct udev* udev_new(void) { return 0; }
struct udev* udev_unref(struct udev* udev) { return udev; }
struct udev_device* udev_device_new_from_subsystem_sysname(struct udev* udev, const char* subsystem, const char* name) {
  return (void)udev, (void)subsystem, (void)name, (struct udev_device*)0;
}
struct udev_device* udev_device_unref(struct udev_device* device) { return device; }
const char* udev_device_get_property_value(struct udev_device* device, const char* key) {
  return (void)device, (void)key, (const char*)0;
}
