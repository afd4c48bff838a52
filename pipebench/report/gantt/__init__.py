"""Who does what when: devices and links as rows, time to the right, memory below."""
