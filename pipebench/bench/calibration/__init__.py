"""Constants of a device and a framework fitted to a few measured runs of one's own."""
