"""What training frameworks call a plan: layouts, parts and schedules that they read."""
