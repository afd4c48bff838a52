"""What is stored: shown, proven, compared, run again, joined, passed on."""
