"""Where the trials of a sweep run side by side. Each backend maps `assignment.work` over payloads."""
